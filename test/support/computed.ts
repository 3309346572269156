/** Milliseconds this thread has computed so far: what a stalled machine adds is not among them. */
export function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

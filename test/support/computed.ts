/** CPU milliseconds of this thread so far, which a stalled machine does not increase. */
export function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

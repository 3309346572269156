/** CPU milliseconds of this thread so far, which a stalled machine does not increase. */
export function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const words = "some words, and more ".repeat(20_000);
/** CPU milliseconds for them where nothing else runs. */
const quietMs = 10;

/** How many times as long as there this machine computes just now, at least once: what limits of CPU time are multiplied with. */
export function slowness(): number {
  const began = computedMs();
  words.replace(/[a-z]+/g, (word) => word.toUpperCase());
  return Math.max(1, (computedMs() - began) / quietMs);
}

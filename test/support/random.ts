/** mulberry32: the same seed gives the same run. */
export function randomOf(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  function pick<T>(list: readonly [T, ...T[]]): T;
  function pick<T>(list: readonly T[]): T | undefined;
  function pick<T>(list: readonly T[]): T | undefined {
    return list[below(list.length)];
  }
  return { below, pick };
}

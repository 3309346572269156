export type Window = { limit: number; windowMs: number };

/** 60 requests in any sliding 60 s, per API key (spec: Limits). */
export const keyWindow: Window = { limit: 60, windowMs: 60_000 };

/**
 * A sliding log: `hits` are the times of the admitted requests, oldest first. It is exact: any window admits at most
 * `limit`, and a request is refused only if `limit` were admitted in the preceding window.
 */
export function admit(hits: readonly number[], nowMs: number, { limit, windowMs }: Window) {
  // A clock that stepped back must not lock the key out for longer than one window.
  const live = hits.filter((at) => at > nowMs - windowMs && at <= nowMs + windowMs);
  const admitted = live.length < limit;
  if (admitted) live.push(nowMs);
  const oldest = live[0] ?? nowMs;
  return { admitted, hits: live, left: limit - live.length, resetMs: Math.max(0, oldest + windowMs - nowMs) };
}

import type { Id } from "../../protocol/ids.ts";

export type NearLimit = {
  resourceId: Id<"site"> | Id<"database">;
  of: "memory" | "disk";
  /** What its owner reads. */
  detail: string;
};

/** An app that lacks memory may say so several times a minute. */
const againMs = 3_600_000;

/** Tells what is near or beyond a pack's limit, once an hour at most for each resource. */
export class LimitWarnings {
  private readonly told = new Map<string, number>();
  private readonly send: (near: NearLimit) => void;
  private readonly now: () => number;

  constructor(send: (near: NearLimit) => void, now: () => number = () => performance.now()) {
    this.send = send;
    this.now = now;
  }

  tell(near: NearLimit): void {
    const key = `${near.of} ${near.resourceId}`;
    const at = this.now();
    if (at < (this.told.get(key) ?? -Infinity) + againMs) return;
    // Of resources that are gone nothing is kept.
    for (const [one, toldAt] of this.told) if (at >= toldAt + againMs) this.told.delete(one);
    this.told.set(key, at);
    this.send(near);
  }
}

/** So much of a limit is near it. */
const nearly = 0.9;
const longMs = 10 * 60_000;

export const isNear = (used: number, limit: number): boolean => limit > 0 && used >= limit * nearly;

/** Since when a container's memory has been near its limit; null: it is not. */
export const nearSince = (
  before: number | null,
  { atMs, usedMb, limitMb }: { atMs: number; usedMb: number; limitMb: number },
): number | null => (isNear(usedMb, limitMb) ? (before ?? atMs) : null);

export const isLong = (since: number | null, atMs: number): boolean =>
  since !== null && atMs - since >= longMs;

export const memoryNear = (usedMb: number, limitMb: number): string =>
  `The app has used more than nine tenths of its memory for ten minutes, now ${Math.round(usedMb)} MB of ${limitMb} MB. If it needs more, it is killed: reduce its memory use, or choose a larger pack.`;

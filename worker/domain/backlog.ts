/** Work that is done one after the other, each piece for so long, of which no more may wait than so long. */
export class Backlog {
  private readonly eachMs: number;
  private readonly maxMs: number;
  private doneAt = 0;

  constructor(eachMs: number, maxMs: number) {
    this.eachMs = eachMs;
    this.maxMs = maxMs;
  }

  /** false: too much waits already. By the clock, as a request that is broken off would never be counted out. */
  admits(nowMs: number): boolean {
    const waitMs = Math.max(0, this.doneAt - nowMs);
    // A clock that stepped back must keep nobody out.
    const isKnown = waitMs <= this.maxMs + this.eachMs;
    if (isKnown && waitMs > this.maxMs) return false;
    this.doneAt = nowMs + (isKnown ? waitMs : 0) + this.eachMs;
    return true;
  }
}

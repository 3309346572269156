/** Limits the backlog of sequential work in which each task takes the same time. */
export class Backlog {
  private readonly eachMs: number;
  private readonly maxMs: number;
  private doneAt = 0;

  constructor(eachMs: number, maxMs: number) {
    this.eachMs = eachMs;
    this.maxMs = maxMs;
  }

  /** false: the backlog is full. Measured by the clock, because an aborted request would never decrement a counter. */
  admits(nowMs: number): boolean {
    const waitMs = Math.max(0, this.doneAt - nowMs);
    // A clock that was set back must not block everyone.
    const isKnown = waitMs <= this.maxMs + this.eachMs;
    if (isKnown && waitMs > this.maxMs) return false;
    this.doneAt = nowMs + (isKnown ? waitMs : 0) + this.eachMs;
    return true;
  }
}

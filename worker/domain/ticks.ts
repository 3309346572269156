const dayMs = 86_400_000;
/** A clock that jumped is often right again within some minutes. */
const ticksToWait = 10;

/**
 * The times at which the tasks run, on a machine whose clock may be set. After a jump of more than a day into the future,
 * which may be an error, tasks wait for ten ticks: they would end terms, delete what has expired and tell everybody.
 */
export class Ticks {
  private readonly tickMs: number;
  private nextMs: number | undefined;
  private waiting = 0;

  constructor(tickMs: number) {
    this.tickMs = tickMs;
  }

  /** Whether the next tick is not about to come: none was set, it never came, or the clock was set back since. */
  isLost(nowMs: number): boolean {
    return this.nextMs === undefined || Math.abs(nowMs - this.nextMs) > 2 * this.tickMs;
  }

  /** Sets the next tick, just after a full period, when schedules are due. @returns its time in milliseconds */
  next(nowMs: number): number {
    if (this.nextMs !== undefined && nowMs - this.nextMs > dayMs) this.waiting = ticksToWait;
    return (this.nextMs = (Math.floor(nowMs / this.tickMs) + 1) * this.tickMs + 50);
  }

  /** Asked once at each tick, after the next one is set. */
  mayRun(): boolean {
    if (this.waiting === 0) return true;
    this.waiting -= 1;
    return false;
  }
}

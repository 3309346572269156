const minuteMs = 60_000;
/** So often in a minute an account's known devices are taken for its owner. */
const ownerAsks = 5;

type Asker = {
  address: string;
  /** Whose account it is, where this device has signed in to it before; null: nobody knows. */
  known: string | null;
};

/**
 * Work that is done one after the other, each piece for so long, of which no more may wait than so long. An address that had much in
 * the last minute gets none of the later places, and there are as many again for known devices: so neither a few addresses that ask
 * without end, nor very many that nobody knows, take the turn of people who sign in.
 */
export class Backlog {
  private readonly eachMs: number;
  private readonly maxMs: number;
  private doneAt = 0;
  private lately: { atMs: number; names: string[] }[] = [];

  /** @param maxMs for strangers */
  constructor(eachMs: number, maxMs: number) {
    this.eachMs = eachMs;
    this.maxMs = maxMs;
  }

  /** false: too much waits already. By the clock, as a request that is broken off would never be counted out. */
  admits(nowMs: number, { address, known }: Asker): boolean {
    this.lately = this.lately.filter(({ atMs }) => atMs > nowMs - minuteMs && atMs <= nowMs);
    const had = (name: string) => this.lately.filter(({ names }) => names.includes(name)).length;
    const names = [`address ${address}`, ...(known === null ? [] : [`account ${known}`])];
    const isOwner = known !== null && had(`account ${known}`) < ownerAsks;
    const mostMs = this.maxMs * (2 / (2 + had(`address ${address}`)) + (isOwner ? 1 : 0));
    const waitMs = Math.max(0, this.doneAt - nowMs);
    // A clock that stepped back must keep nobody out.
    const isPossible = waitMs <= 2 * this.maxMs + this.eachMs;
    if (isPossible && waitMs > mostMs) return false;
    this.doneAt = nowMs + (isPossible ? waitMs : 0) + this.eachMs;
    this.lately.push({ atMs: nowMs, names });
    return true;
  }
}

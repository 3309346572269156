import { JobError } from "../../job.ts";

type Waiting = { accountId: string; begin: () => void };

const full = "This host is reading as many repositories as it can: try again in a minute.";
const tooManyOfAccount = "Your account's repositories are already being read: wait until that is finished.";

/** So many at once. Of those that wait, an account with the fewest at work is first, then whose last turn was the longest ago. */
export class Turns {
  private readonly limits: { atOnce: number; perAccount: number; waiting: number };
  private readonly working = new Map<string, number>();
  /** Of accounts that work or wait. */
  private readonly lastTurns = new Map<string, number>();
  private turns = 0;
  private waiting: Waiting[] = [];

  constructor(limits: { atOnce: number; perAccount: number; waiting: number }) {
    this.limits = limits;
  }

  /** @throws JobError where too many wait already */
  async take<T>(accountId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.ofAccount(accountId) >= this.limits.perAccount) throw new JobError(tooManyOfAccount);
    if (this.waiting.length >= this.limits.waiting) throw new JobError(full);
    await this.turn(accountId, signal);
    try {
      return await work();
    } finally {
      this.count(accountId, -1);
      this.next();
      if (this.ofAccount(accountId) === 0) this.lastTurns.delete(accountId);
    }
  }

  private turn(accountId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        accountId,
        begin: () => (signal.removeEventListener("abort", leave), resolve()),
      };
      const leave = () => {
        this.waiting = this.waiting.filter((other) => other !== one);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.waiting.push(one);
      this.next();
    });
  }

  private next(): void {
    const atWork = [...this.working.values()].reduce((sum, one) => sum + one, 0);
    if (atWork >= this.limits.atOnce || this.waiting.length === 0) return;
    const lastTurn = ({ accountId }: Waiting) => this.lastTurns.get(accountId) ?? 0;
    const [first] = this.waiting.toSorted(
      (a, b) => this.atWork(a.accountId) - this.atWork(b.accountId) || lastTurn(a) - lastTurn(b),
    );
    if (!first) return;
    this.waiting = this.waiting.filter((one) => one !== first);
    this.lastTurns.set(first.accountId, ++this.turns);
    this.count(first.accountId, 1);
    first.begin();
  }

  private ofAccount(accountId: string): number {
    return this.atWork(accountId) + this.waiting.filter((one) => one.accountId === accountId).length;
  }

  private atWork(accountId: string): number {
    return this.working.get(accountId) ?? 0;
  }

  private count(accountId: string, by: 1 | -1): void {
    const count = this.atWork(accountId) + by;
    if (count === 0) this.working.delete(accountId);
    else this.working.set(accountId, count);
  }
}

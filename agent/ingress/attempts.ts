const hourMs = 60 * 60_000;
/** The first pause after an attempt; the next are twice as long each, up to an hour. */
const pauseMs = 5 * 60_000;
/** On the whole host. Let's Encrypt accepts 300 orders in three hours. */
export const maxRepeatsPerHour = 50;
/** Names that nobody has asked for in so long begin anew. */
const forgetMs = 24 * hourMs;

type Tried = { count: number; pauseUntilMs: number };

/**
 * How often certificates are requested because visitors ask for names that have none. Anybody may ask for any name at any time, also for
 * those whose DNS leads elsewhere, and each request counts towards what the certificate authority allows this host.
 */
export class Attempts {
  private readonly tried = new Map<string, Tried>();
  /** Until when names are admitted without being counted. */
  private readonly open = new Map<string, number>();
  private repeats: number[] = [];
  private readonly now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** The agent itself asks for this name within half a minute: the control plane has found its DNS to be right. */
  want(name: string): void {
    this.forget();
    this.open.set(name, this.now() + 30_000);
  }

  /** Whether one may be requested for this name now; if so, that counts. */
  begin(name: string): boolean {
    const now = this.now();
    if (now <= (this.open.get(name) ?? -Infinity)) return true;
    const { count, pauseUntilMs } = this.tried.get(name) ?? { count: 0, pauseUntilMs: -Infinity };
    this.repeats = this.repeats.filter((at) => at > now - hourMs);
    if (now < pauseUntilMs || (count > 0 && this.repeats.length >= maxRepeatsPerHour)) return false;
    if (count > 0) this.repeats.push(now);
    else this.forget();
    // Caddy asks once more where it has loaded one that has expired, before it renews it.
    this.open.set(name, now + 10_000);
    this.tried.set(name, {
      count: count + 1,
      pauseUntilMs: now + Math.min(hourMs, pauseMs * 2 ** count),
    });
    return true;
  }

  private forget(): void {
    const now = this.now();
    for (const [name, untilMs] of this.open) if (untilMs < now) this.open.delete(name);
    for (const [name, { pauseUntilMs }] of this.tried)
      if (pauseUntilMs < now - forgetMs) this.tried.delete(name);
  }
}

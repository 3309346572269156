import type { Place, Reachable } from "./reachable.ts";
import type { Answer } from "./table.ts";

/** So long a request waits for a site of which nothing takes a connection, and so many of one name or wildcard at most. */
export const waitMs = 3000;
export const maxWaiting = 200;
/** A site that has been out for so long is not starting: who asks is told at once, until it takes connections again. */
export const patienceMs = 10_000;
const lookMs = 50;
const seldomLookMs = 500;
/** Nobody has asked for so long: it is not looked at any more. */
const forgetMs = 30_000;

type Outage = { sinceMs: number; askedAtMs: number; places: string; waiting: Set<(isUp: boolean) => void> };

/**
 * The sites that were asked for when nothing of them took a connection. However many ask for one, it is looked at once per
 * interval; requests are held here and not tried again and again. Names below a wildcard are one: visitors can think of any number.
 */
export class Waiting {
  private readonly outages = new Map<string, Outage>();
  private readonly answerFor: (name: string) => Answer;
  private readonly covering: (name: string) => string;
  private readonly reachable: Pick<Reachable, "takesAny">;

  /** @param covering the name or wildcard of the table that covers a name */
  constructor(
    answerFor: (name: string) => Answer,
    covering: (name: string) => string,
    reachable: Pick<Reachable, "takesAny">,
  ) {
    this.answerFor = answerFor;
    this.covering = covering;
    this.reachable = reachable;
  }

  /** Waits until it is worth to ask for this name once more; false: it is not. */
  async wait(asked: string): Promise<boolean> {
    const name = this.covering(asked);
    const places = this.placesOf(name);
    if (places === null) return true;
    const outage = this.outages.get(name) ?? this.begin(name, places);
    outage.askedAtMs = performance.now();
    if (isLong(outage) || outage.waiting.size >= maxWaiting) return false;
    return new Promise((resolve) => {
      const end = (isUp: boolean) => {
        clearTimeout(timer);
        outage.waiting.delete(end);
        resolve(isUp);
      };
      const timer = setTimeout(end, waitMs, false);
      outage.waiting.add(end);
    });
  }

  /** Whether this name leads to nothing that may be waited for. */
  isOut(asked: string): boolean {
    const outage = this.outages.get(this.covering(asked));
    if (!outage || !isLong(outage)) return false;
    outage.askedAtMs = performance.now();
    return true;
  }

  /** Names may lead elsewhere now: what is new there may be starting. */
  changed(): void {
    for (const [name, outage] of this.outages) {
      const places = this.placesOf(name);
      if (places === null) this.end(name, outage);
      else if (textOf(places) !== outage.places)
        Object.assign(outage, { places: textOf(places), sinceMs: performance.now() });
    }
  }

  private placesOf(name: string): readonly Place[] | null {
    const answer = this.answerFor(name);
    return typeof answer === "string" ? null : answer;
  }

  private begin(name: string, places: readonly Place[]): Outage {
    const now = performance.now();
    const outage: Outage = { sinceMs: now, askedAtMs: now, places: textOf(places), waiting: new Set() };
    this.outages.set(name, outage);
    void this.look(name, outage);
    return outage;
  }

  private async look(name: string, outage: Outage): Promise<void> {
    while (this.outages.get(name) === outage) {
      const places = this.placesOf(name) ?? [];
      const isForgotten = performance.now() - outage.askedAtMs > forgetMs;
      if (isForgotten || (await this.reachable.takesAny(places))) return this.end(name, outage);
      await new Promise((resolve) => setTimeout(resolve, isLong(outage) ? seldomLookMs : lookMs).unref());
    }
  }

  private end(name: string, outage: Outage): void {
    this.outages.delete(name);
    for (const end of outage.waiting) end(true);
  }
}

const isLong = ({ sinceMs }: Outage): boolean => performance.now() - sinceMs > patienceMs;
const textOf = (places: readonly Place[]): string =>
  places.map(({ address, port }) => `${address}:${port}`).join();

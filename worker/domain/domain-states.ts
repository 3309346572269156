import type { DomainStatus } from "../../protocol/states.ts";

/**
 * What a look at a domain causes: `from` guards the UPDATE, `to` is the new status. `PENDING_VERIFICATION` is a domain
 * without `verifiedAt`; the other words are in its column `state`.
 */
type DomainEvent = { from: readonly DomainStatus[]; to: DomainStatus };

export const domainEvents = {
  /** The record of ownership was found, and no other site holds the name. */
  proved: { from: ["PENDING_VERIFICATION"], to: "VERIFIED" },
  /** DNS leads here, and the host serves the name with a valid certificate. */
  answered: { from: ["VERIFIED", "ACTIVE", "ERROR"], to: "ACTIVE" },
  /** Nothing is wrong, but something is still to come. What is in service stays ACTIVE. */
  waits: { from: ["VERIFIED", "ERROR"], to: "VERIFIED" },
  /** The owner or the operator has to put something right. */
  faulted: { from: ["VERIFIED", "ACTIVE", "ERROR"], to: "ERROR" },
  /** Another site proved the name, or the grace period is over. */
  released: { from: ["VERIFIED", "ACTIVE", "ERROR"], to: "PENDING_VERIFICATION" },
} as const satisfies Record<string, DomainEvent>;
export type DomainEventName = keyof typeof domainEvents;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** How long a name is kept for an owner whose record and address are both gone. */
const graceMs = 7 * dayMs;
export const releaseAt = (lostSince: Date): Date => new Date(lostSince.getTime() + graceMs);

const retryMinutes = [1, 1, 1, 2, 5, 10, 15, 30, 60, 120, 240, 360];
const serviceEveryMs = 6 * hourMs;
/** A name that nobody proved for a month is looked at once a day. */
const forgottenAfterMs = 30 * dayMs;

/**
 * The time until the next look in milliseconds.
 * @param looks how often it was looked at in this status
 * @param pendingMs for how long it has not been proved; null if it is
 */
export function untilNextLook(status: DomainStatus, looks: number, pendingMs: number | null): number {
  if (status === "ACTIVE") return serviceEveryMs;
  if (pendingMs !== null && pendingMs > forgottenAfterMs) return dayMs;
  return (retryMinutes[Math.min(looks, retryMinutes.length - 1)] ?? 1) * minuteMs;
}

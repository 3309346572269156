import { eq, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { processorReadings } from "../../db/schema.ts";
import { eventsLateMs } from "../../domain/setup-steps.ts";
import { eachAlone } from "../../each-alone.ts";
import { receiveEvent } from "./receive-event.ts";

const minute = 60_000;
const everyMs = 5 * minute;
/** An event may be listed slightly after its timestamp. */
const overlapMs = 10 * minute;
/** Bounds per run of the cron; the next run continues. */
const windowMs = 24 * 60 * minute;
const mostAtOnce = 200;
/** Stripe lists events for 30 days. */
const listedMs = 29 * 24 * 60 * minute;

const readingOf = async (ctx: Ctx) =>
  (
    await ctx.db.select().from(processorReadings).where(eq(processorReadings.processor, ctx.payments.name))
  )[0];

/**
 * Reads the processor's list of events from the recorded position. It recovers events that were never delivered, and
 * those a restored record has forgotten. Each event is applied once.
 */
export async function readEvents(ctx: Ctx): Promise<void> {
  const { eventsBetween, name } = ctx.payments;
  if (!eventsBetween) return;
  const now = ctx.now().getTime();
  const reading = await readingOf(ctx);
  const readTo = Math.max(reading?.eventsUntil.getTime() ?? now, now - listedMs);
  const isBehind = now - readTo > windowMs;
  if (reading && !isBehind && now - reading.readAt.getTime() < everyMs) return;
  const until = Math.min(now, readTo + windowMs);
  const listed = await eventsBetween(new Date(readTo - overlapMs), new Date(until));
  const known = await ctx.db.all<{ id: string }>(sql`
    SELECT id FROM processor_events WHERE id IN (SELECT value FROM json_each(${JSON.stringify(listed.map(({ id }) => id))}))`);
  const ids = new Set(known.map(({ id }) => id));
  const fresh = listed
    .filter(({ id }) => !ids.has(id))
    // The list is newest first, with a resolution of one second.
    .toReversed()
    .toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
  const some = fresh.slice(0, mostAtOnce);
  let applied = 0;
  await eachAlone("read events", some, async (event) => {
    await receiveEvent(ctx, event);
    applied += 1;
  });
  // The position stays before it, so that it is tried again and not lost.
  if (applied < some.length) throw new Error("At least one event was not applied, as the lines before say");
  const last = fresh.length > some.length ? some.at(-1) : undefined;
  const eventsUntil = last?.createdAt.getTime() ?? until;
  const readAt = !last && until === now ? now : (reading?.readAt.getTime() ?? 0);
  await ctx.statement(sql`
    INSERT INTO processor_readings (processor, events_until, read_at) VALUES (${name}, ${eventsUntil}, ${readAt})
    ON CONFLICT (processor) DO UPDATE SET events_until = excluded.events_until, read_at = excluded.read_at`);
}

const reachesTo = ({ readAt }: { readAt: Date }, atMs: number): boolean =>
  readAt.getTime() > atMs - eventsLateMs;

/**
 * Whether the record includes all payments up to about that time; one restored from an earlier moment does not. The
 * test processor keeps its state in the record itself.
 */
export async function arePaymentsRead(ctx: Ctx, atMs: number): Promise<boolean> {
  if (!ctx.payments.eventsBetween) return true;
  const reading = await readingOf(ctx);
  return reading !== undefined && reachesTo(reading, atMs);
}

/**
 * Whether the record may lack payments that the list has, as after a restore, a long outage of the service or of the
 * processor. A list that was never read, since the key may not, holds nothing up.
 */
export async function mayLackPayments(ctx: Ctx): Promise<boolean> {
  if (!ctx.payments.eventsBetween) return false;
  const reading = await readingOf(ctx);
  return reading !== undefined && !reachesTo(reading, ctx.now().getTime());
}

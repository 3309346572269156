import { sql, type SQL } from "drizzle-orm";
import type { ProcessorEvent } from "../../adapters/payments/payments.ts";
import type { Ctx } from "../../ctx.ts";

export type ReceivedEvent = Pick<ProcessorEvent, "id" | "type" | "body">;
type EventOutcome = "applied" | "known" | "ignored" | "flagged";

/** For the batch that applies the event: keeps its id for good, with the outcome. */
export const recordEvent = (ctx: Ctx, { id, type, body }: ReceivedEvent, outcome: EventOutcome | SQL) =>
  ctx.statement(sql`
    INSERT INTO processor_events (id, type, body, outcome, received_at)
    SELECT ${id}, ${type}, ${body}, ${outcome}, ${ctx.now().getTime()} WHERE true ON CONFLICT (id) DO NOTHING`);

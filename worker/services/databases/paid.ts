import { and, eq, inArray, sql } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { databases } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { addMonths } from "../../domain/pricing.ts";
import { queueDatabaseJob } from "./queue.ts";

/** Statements behind the one that settled the invoice: its database PROVISIONING, and a job for the host that fits best. */
export function databasePaid(ctx: Ctx, invoice: { termMonths: number | null }, mark: string, now: Date) {
  const { from, to, wanted } = databaseEvents.invoicePaid;
  const databaseId = sql`(SELECT resource_id FROM invoices WHERE settlement_mark = ${mark})`;
  return [
    ctx.db
      .update(databases)
      .set({ status: to, wanted, mark, paidUntil: addMonths(now, invoice.termMonths ?? 1), updatedAt: now })
      .where(and(eq(databases.id, databaseId), inArray(databases.status, [...from])))
      .returning({ hostId: databases.hostId }),
    queueDatabaseJob(ctx, "database.provision", databaseId, sql`d.mark = ${mark}`),
  ] as const;
}

import { and, eq, inArray, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { databases } from "../../db/schema.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import { addMonths } from "../../domain/pricing.ts";
import { forgetDatabase } from "../../jobs/databases/forget.ts";
import { queueDatabaseJob } from "../../jobs/databases/queue.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/** Moves the database to PROVISIONING and queues a job for the host that fits best. */
export const paidDatabase: EffectOf = (ctx, invoice, mark, now) => {
  const { from, to, wanted } = databaseEvents.invoicePaid;
  const databaseId = sql`(SELECT resource_id FROM invoices WHERE settlement_mark = ${mark})`;
  return effect(
    {
      moved: ctx.db
        .update(databases)
        .set({
          status: to,
          wanted,
          mark,
          paidUntil: addMonths(now, invoice.termMonths ?? 1),
          billingDay: now.getUTCDate(),
          updatedAt: now,
        })
        .where(and(eq(databases.id, databaseId), inArray(databases.status, [...from])))
        .returning({ hostId: databases.hostId }),
      job: queueDatabaseJob(ctx, "database.provision", databaseId, sql`d.mark = ${mark}`),
    },
    ({ moved: [database] }) => {
      if (database) ctx.hosts.wake(database.hostId);
    },
  );
};

/** Deletes a never-paid database with its invoice; no host has any of it. */
export const voidedDatabase: Undone = (ctx, { resourceId }, mark) =>
  resourceId === null
    ? []
    : [
        ...forgetDatabase(
          ctx,
          resourceId as Id<"database">,
          sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})
            AND (SELECT status FROM databases WHERE id = ${resourceId}) = 'PENDING'`,
        ),
      ];

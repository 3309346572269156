import { eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { databases, sites } from "../../db/schema.ts";
import { addDays } from "../../domain/pricing.ts";
import { keepSuspendedDays, warnDays } from "../../domain/terms.ts";
import { deleteDatabase } from "../../jobs/databases/remove.ts";
import { deleteSite } from "../../jobs/sites/remove.ts";
import { flagStatement } from "../payments/flag.ts";
import { warningOf } from "./remind.ts";
import { tableOf, termed, type Termed } from "../../db/resource.ts";
import { ofSuspended, selectDue, type TermRow } from "./resource.ts";

/**
 * Deletes, as DELETE does, what was suspended long enough and whose owner was warned a week ago. Only a warning that
 * a mail service accepted counts; operators see the resources that wait for one.
 */
export async function deleteExpired(ctx: Ctx): Promise<void> {
  for (const kind of termed) {
    for (const { id } of await ctx.db.all<TermRow>(selectDue(kind, expired(ctx))))
      await deleteOne(ctx, kind, id);
    for (const row of await ctx.db.all<TermRow>(selectDue(kind, unwarned(ctx)))) await flagUnwarned(ctx, row);
  }
}

const warnedBy = (ctx: Ctx) => addDays(ctx.now(), -warnDays).getTime();

const unwarned = (
  ctx: Ctx,
) => sql`r.status = 'SUSPENDED' AND r.suspended_at <= ${addDays(ctx.now(), -keepSuspendedDays).getTime()}
  AND EXISTS (SELECT 1 FROM mails WHERE id = ${warningOf} AND sent_at IS NULL AND created_at <= ${warnedBy(ctx)})
  AND NOT EXISTS (SELECT 1 FROM payment_flags WHERE reason = 'owner_not_warned' AND reference = r.id || ':' || r.suspended_at)`;

async function flagUnwarned(ctx: Ctx, { id, suspendedAt }: TermRow): Promise<void> {
  await flagStatement(ctx, {
    reason: "owner_not_warned",
    reference: `${id}:${suspendedAt}`,
    invoiceId: null,
    amountCents: null,
    currency: null,
  });
}

const expired = (
  ctx: Ctx,
) => sql`r.status = 'SUSPENDED' AND r.suspended_at <= ${addDays(ctx.now(), -keepSuspendedDays).getTime()}
  AND NOT ${ofSuspended}
  AND EXISTS (SELECT 1 FROM mails WHERE id = ${warningOf} AND sent_at <= ${warnedBy(ctx)})
  AND NOT EXISTS (SELECT 1 FROM invoices i JOIN checkouts c ON c.invoice_id = i.id
    WHERE i.resource_id = r.id AND i.kind = 'renewal' AND c.status = 'processing')`;

async function deleteOne(ctx: Ctx, kind: Termed, id: string): Promise<void> {
  // A payment at this moment prevents the deletion.
  const still = sql`EXISTS (SELECT 1 FROM ${tableOf(kind)} r WHERE r.id = ${id} AND ${expired(ctx)})`;
  if (kind === "sites") {
    const [site] = await ctx.db
      .select()
      .from(sites)
      .where(eq(sites.id, id as Id<"site">));
    if (site) await deleteSite(ctx, site, still);
    return;
  }
  const [database] = await ctx.db
    .select()
    .from(databases)
    .where(eq(databases.id, id as Id<"database">));
  if (database) await deleteDatabase(ctx, database, { only: still });
}

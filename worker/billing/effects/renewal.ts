import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { tableOf, termedOf } from "../../db/resource.ts";
import { addMonthsTo, billingDayOfRow, inService, ofSuspended } from "../terms/resource.ts";
import { resumedStatus, startAgain } from "../terms/resume.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/**
 * Extends the term from its own end without a restart. What is suspended starts again; its term begins now, unless it
 * was suspended with its account and the old one is not over. A pack change takes effect with the new term.
 */
export const paidRenewal: EffectOf = (ctx, invoice, mark, now) => {
  const kind = termedOf(invoice.resourceId);
  if (!kind) throw new Error(`The resource of renewal ${invoice.id} has no term`);
  const id = invoice.resourceId as Id<"site"> | Id<"database">;
  const { packId } = invoice;
  const months = sql`${invoice.termMonths ?? 1}`;
  const isPaid = sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})`;
  const nowMs = now.getTime();
  const isChange = sql`pack_id <> ${packId}`;
  const begins = sql`max(paid_until, ${nowMs})`;
  const billingDay = sql`CASE WHEN paid_until > ${nowMs} THEN ${billingDayOfRow} ELSE ${now.getUTCDate()} END`;
  const waits = sql`(${isChange} AND paid_until > ${nowMs})`;
  return effect(
    {
      extended: ctx.statement(sql`
        UPDATE ${tableOf(kind)} SET paid_until = ${addMonthsTo(sql`paid_until`, months, billingDayOfRow)},
          billing_day = ${billingDayOfRow}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = CASE WHEN ${isChange} THEN ${packId} END,
          next_pack_at = CASE WHEN ${isChange} THEN ${begins} END, updated_at = ${nowMs}
        WHERE id = ${id} AND status IN ${inService} AND ${isPaid}`),
      resumed: ctx.statement(sql`
        UPDATE ${tableOf(kind)} AS r SET paid_until = ${addMonthsTo(begins, months, billingDay)},
          billing_day = ${billingDay}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = CASE WHEN ${waits} THEN ${packId} END,
          next_pack_at = CASE WHEN ${waits} THEN paid_until END,
          pack_changed_at = CASE WHEN ${isChange} AND NOT ${waits} THEN ${nowMs} ELSE pack_changed_at END,
          pack_id = CASE WHEN ${waits} THEN pack_id ELSE ${packId} END,
          suspended_at = CASE WHEN ${ofSuspended} THEN suspended_at END, mark = ${mark}, updated_at = ${nowMs},
          status = ${resumedStatus(kind)}
        WHERE id = ${id} AND status = 'SUSPENDED' AND ${isPaid}`),
      started: startAgain(ctx, kind, id, mark),
    },
    () => ctx.hosts.wake(null),
  );
};

/**
 * When the unpaid time begins if this invoice is refunded, in milliseconds: with its term, or with those before it that were refunded and
 * kept for its sake. 0: with the first payment.
 */
export const unpaidFrom = (resourceId: SQL, invoiceId: SQL, begins: SQL): SQL => {
  const termsOf = (status: SQL) => sql`coalesce(period_end, 0)) FROM invoices
    WHERE resource_id = ${resourceId} AND kind <> 'change' AND status = ${status}`;
  const lastPaid = sql`(SELECT max(${termsOf(sql`'paid'`)} AND id <> ${invoiceId})`;
  return sql`min(${begins}, coalesce((SELECT min(${termsOf(sql`'refunded'`)}
    AND coalesce(period_end, 0) > coalesce(${lastPaid}, -1)), ${begins}))`;
};

/**
 * Takes back the refunded term, and the pack that was to begin with it; a part that has begun ends now. A term that a
 * later paid renewal extends is kept, since taking it back would take the later one. The resource keeps running until
 * its term is next checked. A renewal that is not paid yet is of the new end from then on.
 */
export const refundedTerm: Undone = (ctx, { id, resourceId, periodEnd }, mark, now) => {
  const kind = termedOf(resourceId);
  const ownBegin = periodEnd?.getTime() ?? 0;
  const begins = unpaidFrom(sql`${resourceId}`, sql`${id}`, sql`${ownBegin}`);
  const endsNow = sql`${begins} < ${now.getTime()} AND paid_until > ${now.getTime()}`;
  const isToCome = sql`next_pack_at > ${now.getTime()}`;
  return kind === null
    ? []
    : [
        ctx.statement(sql`
          UPDATE ${tableOf(kind)} SET paid_until = min(paid_until, max(${now.getTime()}, ${begins})), updated_at = ${now.getTime()},
            billing_day = CASE WHEN ${endsNow} THEN ${now.getUTCDate()} ELSE ${billingDayOfRow} END,
            next_pack_id = CASE WHEN ${isToCome} THEN NULL ELSE next_pack_id END,
            next_pack_at = CASE WHEN ${isToCome} THEN NULL ELSE next_pack_at END
          WHERE id = ${resourceId} AND EXISTS (SELECT 1 FROM refunds WHERE mark = ${mark})
            AND NOT EXISTS (SELECT 1 FROM invoices WHERE resource_id = ${resourceId} AND kind = 'renewal' AND status = 'paid'
              AND period_end > ${ownBegin})`),
        ctx.statement(sql`
          UPDATE OR IGNORE invoices SET period_end = r.paid_until, due_at = r.paid_until FROM ${tableOf(kind)} r
          WHERE r.id = resource_id AND resource_id = ${resourceId} AND invoices.kind = 'renewal' AND invoices.status = 'unpaid'
            AND period_end > r.paid_until AND EXISTS (SELECT 1 FROM refunds WHERE mark = ${mark})`),
      ];
};

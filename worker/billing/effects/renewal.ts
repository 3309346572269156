import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { tableOf, termedOf } from "../../db/resource.ts";
import { addMonthsTo, inService, ofSuspended } from "../terms/resource.ts";
import { resumedStatus, startAgain } from "../terms/resume.ts";
import { effect, type EffectOf, type Undone } from "./effect.ts";

/**
 * Extends the term from its own end without a restart. A suspended resource gets a term from now on and starts again.
 * A pack change takes effect with the new term.
 */
export const paidRenewal: EffectOf = (ctx, invoice, mark, now) => {
  const kind = termedOf(invoice.resourceId);
  if (!kind) throw new Error(`The resource of renewal ${invoice.id} has no term`);
  const id = invoice.resourceId as Id<"site"> | Id<"database">;
  const { packId } = invoice;
  const months = sql`${invoice.termMonths ?? 1}`;
  const isPaid = sql`EXISTS (SELECT 1 FROM invoices WHERE settlement_mark = ${mark})`;
  const nowMs = now.getTime();
  return effect(
    {
      extended: ctx.statement(sql`
        UPDATE ${tableOf(kind)} SET paid_until = ${addMonthsTo(sql`paid_until`, months)}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = CASE WHEN pack_id = ${packId} THEN NULL ELSE ${packId} END,
          next_pack_at = CASE WHEN pack_id = ${packId} THEN NULL ELSE max(paid_until, ${nowMs}) END, updated_at = ${nowMs}
        WHERE id = ${id} AND status IN ${inService} AND ${isPaid}`),
      resumed: ctx.statement(sql`
        UPDATE ${tableOf(kind)} AS r SET paid_until = ${addMonthsTo(sql`${nowMs}`, months)}, billing_term = ${months},
          next_billing_term = NULL, next_pack_id = NULL, next_pack_at = NULL,
          pack_changed_at = CASE WHEN pack_id = ${packId} THEN pack_changed_at ELSE ${nowMs} END, pack_id = ${packId},
          suspended_at = CASE WHEN ${ofSuspended("r")} THEN suspended_at END, mark = ${mark}, updated_at = ${nowMs},
          status = ${resumedStatus(kind)}
        WHERE id = ${id} AND status = 'SUSPENDED' AND ${isPaid}`),
      started: startAgain(ctx, kind, id, mark),
    },
    () => ctx.hosts.wake(null),
  );
};

/**
 * Takes back the refunded term; a part that has begun ends now. A term that a later paid renewal extends is kept,
 * since taking it back would take the later one. The resource keeps running until its term is next checked.
 */
export const refundedTerm: Undone = (ctx, { resourceId, periodEnd }, mark, now) => {
  const kind = termedOf(resourceId);
  const begins = periodEnd?.getTime() ?? 0;
  return kind === null
    ? []
    : [
        ctx.statement(sql`
          UPDATE ${tableOf(kind)} SET paid_until = min(paid_until, max(${now.getTime()}, ${begins})), updated_at = ${now.getTime()}
          WHERE id = ${resourceId} AND EXISTS (SELECT 1 FROM refunds WHERE mark = ${mark})
            AND NOT EXISTS (SELECT 1 FROM invoices WHERE resource_id = ${resourceId} AND kind = 'renewal' AND status = 'paid'
              AND period_end > ${begins})`),
      ];
};

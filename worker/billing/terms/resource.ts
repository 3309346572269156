import { sql, type SQL } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { tableOf, type Termed } from "../../db/resource.ts";

/** Statuses of resources that have a term; what was never paid or is being deleted has none. */
export const inService = sql.raw("('DEPLOYING', 'PROVISIONING', 'RUNNING', 'STOPPED', 'FAILED')");

/** Whether an operator has suspended the account of the row `r`. */
export const ofSuspended = sql.raw(
  "EXISTS (SELECT 1 FROM accounts WHERE id = r.account_id AND suspended_at IS NOT NULL)",
);

/** Whether the invoice may still be paid through a checkout. */
export const beingPaid = (invoiceId: SQL): SQL =>
  sql`EXISTS (SELECT 1 FROM checkouts WHERE invoice_id = ${invoiceId} AND status IN ('opening', 'open', 'processing'))`;

/** The unpaid renewal of the resource. */
export const renewalOf = (resourceId: SQL | string): SQL =>
  sql`invoices WHERE resource_id = ${resourceId} AND kind = 'renewal' AND status = 'unpaid'`;

/** `billingDayOf` of domain/pricing.ts as SQL. */
export const billingDayOfRow = sql.raw(
  "coalesce(billing_day, CAST(strftime('%d', paid_until / 1000, 'unixepoch') AS INTEGER))",
);

/**
 * `addMonths` of domain/pricing.ts as SQL over a column of milliseconds: the given day of a later month, or that
 * month's last day.
 */
export function addMonthsTo(time: SQL, months: SQL, dayOfMonth: SQL): SQL {
  const first = sql`'unixepoch', 'start of month', '+' || (${months}) || ' months'`;
  const seconds = sql`(${time}) / 1000`;
  return sql`(CAST(strftime('%s', ${seconds}, ${first}) AS INTEGER) * 1000 + (${time}) % 86400000 + 86400000 * (
    min(${dayOfMonth}, CAST(strftime('%d', ${seconds}, ${first}, '+1 month', '-1 day') AS INTEGER)) - 1))`;
}

export type TermRow = {
  id: Id<"site"> | Id<"database">;
  accountId: Id<"account">;
  name: string;
  status: string;
  hostId: Id<"host"> | null;
  paidUntil: number;
  suspendedAt: number | null;
};

/** Due rows, oldest term first; `+` makes SQLite use the index of `due`. @param due a condition on the row `r` */
export const selectDue = (kind: Termed, due: SQL): SQL => sql`
  SELECT r.id, r.account_id AS accountId, r.name, r.status, r.host_id AS hostId, r.paid_until AS paidUntil,
    r.suspended_at AS suspendedAt
  FROM ${tableOf(kind)} r WHERE ${due} ORDER BY +r.paid_until LIMIT 100`;

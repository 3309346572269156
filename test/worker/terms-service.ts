import { contextOf } from "../../worker/compose.ts";
import type { Ctx } from "../../worker/ctx.ts";
import type { Env } from "../../worker/env.ts";
import { settleInvoice, type Settled } from "../../worker/billing/invoices/settle.ts";
import { reconcileBilling, reconcileTerms } from "../../worker/cron.ts";
import { reapJobs } from "../../worker/jobs/reap.ts";
import { bindings } from "./service.ts";
import { rows } from "./stripe-service.ts";

export const dayMs = 86_400_000;

/** This installation at another time; without a service that takes mail, so that mails stay to be read. */
export const ctxAt = (time: Date, database: D1Database = bindings.DB): Ctx => ({
  ...contextOf(
    { ...bindings, DB: database, MAIL_ENDPOINT: undefined } as unknown as Env,
    { type: "system" },
    () => undefined,
  ),
  now: () => time,
});

/** Warnings of a deletion go out in the minute in which they are written. */
export const sendWarnings = async (): Promise<void> => {
  await bindings.DB.prepare(
    "UPDATE mails SET sent_at = created_at WHERE id LIKE 'deletion:%' AND sent_at IS NULL",
  ).run();
};

/** All that the cron does about money and terms at this time, twice: a second time changes nothing. */
export async function tickAt(time: Date, warningsArrive = true): Promise<void> {
  for (let round = 0; round < 2; round++) {
    await reconcileBilling(ctxAt(time));
    await reconcileTerms(ctxAt(time));
    if (warningsArrive) await sendWarnings();
  }
}
export const reapAt = (time: Date): Promise<void> => reapJobs(ctxAt(time));

export type InvoiceRow = {
  id: string;
  token: string;
  kind: string;
  status: string;
  amount_cents: number;
  currency: string;
  due_at: number;
  lines: string;
};
export const invoicesOf = (resourceId: string, kind = "renewal"): Promise<InvoiceRow[]> =>
  rows<InvoiceRow>(
    "SELECT * FROM invoices WHERE resource_id = ? AND kind = ? ORDER BY rowid",
    resourceId,
    kind,
  );

let paid = 0;
export const payAt = (
  time: Date,
  { id, amount_cents, currency }: InvoiceRow,
  database?: D1Database,
): Promise<Settled> => {
  const reference = `paid-${++paid}`;
  return settleInvoice(ctxAt(time, database), id, {
    processor: "test",
    reference,
    sessionId: reference,
    amountCents: amount_cents,
    currency,
  });
};

/** What its owner was told, by occasion. */
export const mailsOf = async (resourceId: string): Promise<string[]> =>
  (
    await rows<{ id: string; text: string }>(
      `SELECT m.id, m.text FROM mails m WHERE m.id LIKE '%' || ?1 || '%'
        OR m.id IN (SELECT 'issued:' || id FROM invoices WHERE resource_id = ?1) ORDER BY m.created_at, m.rowid`,
      resourceId,
    )
  ).map(({ id }) => id.split(":")[0] ?? "");

import { sql, type SQL } from "drizzle-orm";
import type { BillingTermMonths } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { termMail } from "../../domain/term-mails.ts";
import { addDays, termPriceCents, termText, type Discounts } from "../../domain/pricing.ts";
import { renewalDays } from "../../domain/terms.ts";
import { mintToken } from "../../domain/tokens.ts";
import { queueMail } from "../../mails/queue.ts";
import { eachAlone } from "../../each-alone.ts";
import { dropChange } from "./apply-change.ts";
import { payUrl } from "../../domain/pay-url.ts";
import { queueStop } from "../../jobs/queue-stop.ts";
import { tableOf, termed, wordOf, type Termed } from "../../db/resource.ts";
import { beingPaid, inService, ofSuspended, selectDue, type TermRow } from "./resource.ts";

type Bought = {
  packId: string;
  packName: string;
  months: BillingTermMonths;
  priceCents: number;
  currency: string;
  discounts: string;
};

/** Issues one renewal invoice for each term that ends soon or has ended. */
export async function issueRenewals(ctx: Ctx): Promise<void> {
  for (const kind of termed) {
    const due = await ctx.db.all<TermRow>(selectDue(kind, dueAt(ctx.now())));
    await eachAlone("issue renewals", due, (row) => issueRenewal(ctx, kind, row));
  }
}

/** A condition on `r`. A change that is being paid comes first, because it determines the pack to renew. */
const dueAt = (now: Date): SQL => sql`r.paid_until <= ${addDays(now, renewalDays).getTime()}
  AND (+r.status IN ${inService} OR +r.status = 'SUSPENDED' AND NOT ${ofSuspended}) AND r.next_pack_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM invoices WHERE resource_id = r.id AND kind = 'renewal' AND status = 'unpaid')
  AND NOT EXISTS (SELECT 1 FROM invoices i WHERE i.resource_id = r.id AND i.kind = 'change' AND i.status = 'unpaid'
    AND ${beingPaid(sql`i.id`)})`;

export async function issueRenewal(ctx: Ctx, kind: Termed, row: TermRow): Promise<void> {
  const now = ctx.now();
  // From here on an unpaid change is void and does not count.
  const unpaidChange = sql`EXISTS (SELECT 1 FROM invoices WHERE resource_id = r.id AND kind = 'change' AND status = 'unpaid')`;
  const packOf = sql`CASE WHEN ${unpaidChange} THEN r.pack_id ELSE coalesce(r.next_pack_id, r.pack_id) END`;
  const monthsOf = sql`coalesce(r.next_billing_term, r.billing_term)`;
  const [bought] = await ctx.db.all<Bought>(sql`
    SELECT p.id AS packId, p.name AS packName, p.price_cents AS priceCents, p.currency, p.discounts, ${monthsOf} AS months
    FROM ${tableOf(kind)} r JOIN packs p ON p.id = ${packOf} WHERE r.id = ${row.id}`);
  if (!bought) return;
  const id = ctx.newId("invoice");
  const token = mintToken("inv", ctx.random(32));
  const { packName, months, priceCents, currency } = bought;
  const amountCents = termPriceCents(priceCents, months, JSON.parse(bought.discounts) as Discounts);
  const what = wordOf(kind);
  const description = `${what === "site" ? "Site" : "Database"} ${row.name}: ${packName}, ${termText(months)} more`;
  const paidUntil = new Date(row.paidUntil);
  const issued = sql`EXISTS (SELECT 1 FROM invoices WHERE id = ${id})`;
  const price = `${(amountCents / 100).toFixed(2)} ${currency.toUpperCase()}`;
  await ctx.db.batch([
    dropChange(ctx, kind, row.id, sql`${unpaidChange} AND ${dueAt(now)}`),
    ctx.statement(sql`
      UPDATE invoices SET status = 'void' WHERE resource_id = ${row.id} AND kind = 'change' AND status = 'unpaid'
        AND EXISTS (SELECT 1 FROM ${tableOf(kind)} r WHERE r.id = ${row.id} AND ${dueAt(now)})`),
    ctx.statement(sql`
      INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, term_months,
        pack_id, period_end, created_at, due_at)
      SELECT ${id}, ${token}, r.account_id, 'renewal', 'unpaid', ${amountCents}, ${currency},
        ${JSON.stringify([{ description, amountCents }])}, r.id, ${months}, ${bought.packId}, r.paid_until,
        ${now.getTime()}, r.paid_until
      FROM ${tableOf(kind)} r WHERE r.id = ${row.id} AND r.paid_until = ${row.paidUntil} AND ${dueAt(now)}
        AND coalesce(r.next_pack_id, r.pack_id) = ${bought.packId} AND ${monthsOf} = ${months}
      ON CONFLICT DO NOTHING`),
    queueMail(
      ctx,
      {
        id: `issued:${id}`,
        accountId: row.accountId,
        ...termMail("issued", {
          what,
          name: row.name,
          paidUntil,
          payUrl: payUrl(ctx.config.SITE_URL, token),
          price,
        }),
      },
      issued,
    ),
    // The page of a suspended site links to the invoice that can be paid.
    queueStop(ctx, "sites", row.id, sql`r.status = 'SUSPENDED' AND ${issued}`),
  ]);
  if (row.status === "SUSPENDED" && row.hostId) ctx.hosts.wake(row.hostId);
}

import { sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { BillingTermMonths } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import { databases, sites } from "../../db/schema.ts";
import { addDays, invoiceDueDays, termPriceCents, termText } from "../../domain/pricing.ts";
import { mintToken } from "../../domain/tokens.ts";
import type { PackRow } from "../../db/rows.ts";

const tables = { site: sites, database: databases };

type Ordered = {
  id: Id<"site"> | Id<"database">;
  /** The beginning of the invoice line. */
  what: string;
  pack: PackRow;
  billingTerm: BillingTermMonths;
  createdAt: Date;
};

/**
 * The first, unpaid invoice of a new site or database. It is inserted only beside its row: nothing remains if the
 * name was taken in the meantime.
 */
export function firstInvoice(ctx: Ctx, { id, what, pack, billingTerm, createdAt }: Ordered) {
  const [invoiceId, invoiceToken] = [ctx.newId("invoice"), mintToken("inv", ctx.random(32))];
  const amountCents = termPriceCents(pack.priceCents, billingTerm, pack.discounts);
  const lines = [{ description: `${what}: ${pack.name}, ${termText(billingTerm)}`, amountCents }];
  return {
    invoiceId,
    invoiceToken,
    statement: ctx.statement(sql`
      INSERT INTO invoices (id, token, account_id, kind, status, amount_cents, currency, lines, resource_id, term_months,
        created_at, due_at)
      SELECT ${invoiceId}, ${invoiceToken}, r.account_id, ${pack.kind}, 'unpaid', ${amountCents}, ${pack.currency},
        ${JSON.stringify(lines)}, r.id, r.billing_term, r.created_at, ${addDays(createdAt, invoiceDueDays).getTime()}
      FROM ${tables[pack.kind]} r WHERE r.id = ${id}`),
  };
}

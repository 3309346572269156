import { sql, type SQL } from "drizzle-orm";
import type { FlagReason } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";

type Flagged = {
  reason: FlagReason;
  reference: string;
  invoiceId: string | SQL | null;
  amountCents: number | null;
  currency: string | null;
};

/** For a batch: raises a flag for an operator, once per reason and reference. */
export const flagStatement = (ctx: Ctx, flag: Flagged, guard: SQL = sql`true`) =>
  ctx.statement(sql`
    INSERT INTO payment_flags (id, reason, reference, invoice_id, amount_cents, currency, created_at)
    SELECT ${ctx.newId("flag")}, ${flag.reason}, ${flag.reference}, ${flag.invoiceId}, ${flag.amountCents}, ${flag.currency}, ${ctx.now().getTime()}
    WHERE ${guard} ON CONFLICT DO NOTHING`);

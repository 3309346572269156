import type { InvoiceKind } from "../../../protocol/states.ts";
import { paidChange, voidedChange } from "./change.ts";
import { paidCredits } from "./credits.ts";
import { paidDatabase, voidedDatabase } from "./database.ts";
import type { EffectOf, Undone } from "./effect.ts";
import { paidRenewal, refundedTerm } from "./renewal.ts";
import { paidSite, voidedSite } from "./site.ts";

/** Effects of a payment by kind of invoice. A kind without an entry cannot be settled. */
export const effects: Partial<Record<InvoiceKind, EffectOf>> = {
  site: paidSite,
  database: paidDatabase,
  credits: paidCredits,
  renewal: paidRenewal,
  change: paidChange,
};

/** Effects of voiding a never-paid invoice, or of a refund that was reported before its payment, by kind of invoice. */
export const voided: Partial<Record<InvoiceKind, Undone>> = {
  site: voidedSite,
  database: voidedDatabase,
  change: voidedChange,
};

/** Effects of a refund by kind of invoice; `mark` is the refund's. Credits are returned by the refund's own hold. */
export const refunded: Partial<Record<InvoiceKind, Undone>> = {
  site: refundedTerm,
  database: refundedTerm,
  renewal: refundedTerm,
};

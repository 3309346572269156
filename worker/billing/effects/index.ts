import type { InvoiceKind } from "../../../protocol/states.ts";
import { paidChange, voidedChange } from "./change.ts";
import { paidCredits } from "./credits.ts";
import { paidDatabase, voidedDatabase } from "./database.ts";
import type { EffectOf, Undone } from "./effect.ts";
import { paidRenewal, refundedTerm } from "./renewal.ts";
import { paidSite, voidedSite } from "./site.ts";

/** Kind of invoice → what its payment causes. An invoice of a kind that is not here cannot be settled. */
export const effects: Partial<Record<InvoiceKind, EffectOf>> = {
  site: paidSite,
  database: paidDatabase,
  credits: paidCredits,
  renewal: paidRenewal,
  change: paidChange,
};

/** Kind of invoice → what goes with it when it is void, or its money went back before it was heard of: what was never paid. */
export const voided: Partial<Record<InvoiceKind, Undone>> = {
  site: voidedSite,
  database: voidedDatabase,
  change: voidedChange,
};

/** Kind of invoice → what ends when it is refunded; `mark` is the refund's. Credits go back by the refund's own hold. */
export const refunded: Partial<Record<InvoiceKind, Undone>> = {
  site: refundedTerm,
  database: refundedTerm,
  renewal: refundedTerm,
};

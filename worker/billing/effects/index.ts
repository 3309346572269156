import type { BatchItem } from "drizzle-orm/batch";
import type { InvoiceKind } from "../../../protocol/states.ts";
import type { Ctx } from "../../ctx.ts";
import type { InvoiceRow } from "../../db/rows.ts";
import { paidChange, voidedChange } from "./change.ts";
import { paidCredits } from "./credits.ts";
import { paidDatabase, voidedDatabase } from "./database.ts";
import { paidRenewal, refundedTerm } from "./renewal.ts";
import { paidSite, voidedSite } from "./site.ts";

/** What a paid invoice causes. */
export type Effect = {
  /** Of the batch that settles; each selects by the mark, so that all of it happens or nothing. */
  statements: BatchItem<"sqlite">[];
  /** After the commit, with what the statements answered; it may be lost. */
  hint?(answers: unknown[]): void;
};

/** `mark` is the paid invoice's `settlement_mark`, once the batch before it has paid it. */
export type EffectOf = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => Effect;

/** Kind of invoice → what its payment causes. An invoice of a kind that is not here cannot be settled. */
export const effects: Partial<Record<InvoiceKind, EffectOf>> = {
  site: paidSite,
  database: paidDatabase,
  credits: paidCredits,
  renewal: paidRenewal,
  change: paidChange,
};

/** Of a batch that voids or refunds an invoice; each selects by the mark, which is unique to the batch. */
type Undone = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => BatchItem<"sqlite">[];

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

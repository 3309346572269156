import type { BatchItem } from "drizzle-orm/batch";
import type { Ctx } from "../../ctx.ts";
import type { Answers, Statements } from "../../db/batch.ts";
import type { InvoiceRow } from "../../db/rows.ts";

/** What a paid invoice causes. */
export type Effect = {
  /** Of the batch that settles; each selects by the mark, so that all of it happens or nothing. */
  statements: Statements;
  /** After the commit, with what the statements answered; it may be lost. */
  hint?(answers: never): void;
};

/** An effect whose hint is given the answers of its statements by name. */
export const effect = <const Of extends Statements>(
  statements: Of,
  hint?: (answers: Answers<Of>) => void,
): Effect => ({ statements, ...(hint && { hint }) });

/** `mark` is the paid invoice's `settlement_mark`, once the batch before it has paid it. */
export type EffectOf = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => Effect;

/** Of a batch that voids or refunds an invoice; each selects by the mark, which is unique to the batch. */
export type Undone = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => BatchItem<"sqlite">[];

import type { BatchItem } from "drizzle-orm/batch";
import type { Ctx } from "../../ctx.ts";
import type { Answers, Statements } from "../../db/batch.ts";
import type { InvoiceRow } from "../../db/rows.ts";

/** The effect of a paid invoice. */
type Effect = {
  /** Statements for the settling batch; each selects by the mark, so that either all of them take effect or none. */
  statements: Statements;
  /** Runs after the commit with the answers of the statements; it may be lost. */
  hint?(answers: never): void;
};

/** Creates an effect whose hint receives the answers of its statements by name. */
export const effect = <const Of extends Statements>(
  statements: Of,
  hint?: (answers: Answers<Of>) => void,
): Effect => ({ statements, ...(hint && { hint }) });

/** @param mark the paid invoice's `settlement_mark`, once the preceding statement has paid it */
export type EffectOf = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => Effect;

/** Statements for a batch that voids or refunds an invoice; each selects by the mark, which is unique to the batch. */
export type Undone = (ctx: Ctx, invoice: InvoiceRow, mark: string, now: Date) => BatchItem<"sqlite">[];

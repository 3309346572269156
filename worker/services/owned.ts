import type { BatchItem } from "drizzle-orm/batch";
import { accountOf, type Ctx } from "../ctx.ts";
import { isId, type Id, type IdKind } from "../../protocol/ids.ts";
import { batch, type Answers, type Statements } from "../db/batch.ts";
import { AppError } from "../domain/app-error.ts";

/** Parses an id. @throws AppError not_found */
export function idIn<K extends IdKind>(kind: K, text: string): Id<K> {
  if (!isId(kind, text)) throw new AppError("not_found");
  return text;
}

/** The row, if it exists. @throws AppError not_found */
export function requireFound<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new AppError("not_found");
  return row;
}

type Owned = { accountId: Id<"account"> };

/** The row, if it exists and belongs to the caller. @throws AppError not_found, then forbidden */
export function requireOwned<Row extends Owned>(ctx: Ctx, row: Row | undefined): Row {
  const found = requireFound(row);
  if (found.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return found;
}

/** The caller's row that the query finds, and what other statements of its batch answer. @throws AppError not_found, then forbidden */
export async function ownedWith<Row extends Owned, const Of extends Statements>(
  ctx: Ctx,
  query: BatchItem<"sqlite"> & { _: { result: Row[] } },
  others: Of,
): Promise<{ owned: Row } & Answers<Of>> {
  const { found, answers } = await batch(ctx, { found: query, answers: others });
  return { owned: requireOwned(ctx, (found as Row[])[0]), ...(answers as Answers<Of>) };
}

import { accountOf, type Ctx } from "../ctx.ts";
import { isId, type Id, type IdKind } from "../../protocol/ids.ts";
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

/** The row, if it exists and belongs to the caller. @throws AppError not_found, then forbidden */
export function requireOwned<Row extends { accountId: Id<"account"> }>(ctx: Ctx, row: Row | undefined): Row {
  const found = requireFound(row);
  if (found.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return found;
}

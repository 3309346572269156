import { accountOf, type Ctx } from "../ctx.ts";
import type { Id } from "../../protocol/ids.ts";
import { AppError } from "../domain/app-error.ts";

/** The row, if it exists and belongs to the caller. @throws AppError not_found, then forbidden */
export function requireOwned<Row extends { accountId: Id<"account"> }>(ctx: Ctx, row: Row | undefined): Row {
  if (!row) throw new AppError("not_found");
  if (row.accountId !== accountOf(ctx)) throw new AppError("forbidden");
  return row;
}

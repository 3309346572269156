import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseActionAccepted, DatabaseRemoveQuery } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { deleteDatabase } from "../../jobs/databases/remove.ts";
import { databaseOwnedBy } from "./owned.ts";

export const removeDatabase = async (
  ctx: Ctx,
  { id: databaseId, skipFinalBackup }: ById & DatabaseRemoveQuery,
): Promise<DatabaseActionAccepted> =>
  deleteDatabase(ctx, await databaseOwnedBy(ctx, databaseId), {
    skipFinalBackup: skipFinalBackup === "1",
  });

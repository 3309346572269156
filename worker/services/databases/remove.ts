import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseActionAccepted } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { deleteDatabase } from "../../jobs/databases/remove.ts";
import { databaseOwnedBy } from "./owned.ts";

export const removeDatabase = async (ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseActionAccepted> =>
  deleteDatabase(ctx, await databaseOwnedBy(ctx, databaseId));

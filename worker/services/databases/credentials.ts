import type { DatabaseCredentials } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../context.ts";
import { addressOf, currentLogin } from "./logins.ts";
import { databaseOwnedBy } from "./owned.ts";
import { refuseUnpaid } from "./refuse-unpaid.ts";

/** Reveals the password: to the owner, on request only. */
export async function databaseCredentials(ctx: Ctx, databaseId: string): Promise<DatabaseCredentials> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  return { ...currentLogin(ctx, database), connectionString: addressOf(ctx, database) };
}

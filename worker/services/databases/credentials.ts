import type { ById } from "../../../protocol/api/common.ts";
import type { DatabaseCredentials } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { publicConnectionString } from "../../domain/database-engines.ts";
import { addressOf, currentLogin } from "../../jobs/databases/logins.ts";
import type { DatabaseRow } from "../../db/rows.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { databaseOwnedBy } from "./owned.ts";

/** Reveals the password to the owner on request. */
export async function databaseCredentials(ctx: Ctx, { id: databaseId }: ById): Promise<DatabaseCredentials> {
  const database = await databaseOwnedBy(ctx, databaseId);
  await refuseUnpaid(ctx, database);
  return {
    ...currentLogin(ctx, database),
    connectionString: addressOf(ctx, database),
    publicAccess: publicAddressOf(ctx, database),
  };
}

function publicAddressOf(ctx: Ctx, database: DatabaseRow): DatabaseCredentials["publicAccess"] {
  const { publicEnabled, publicAddress: host, publicPort: port, publicAuthority } = database;
  if (!publicEnabled || host === null || port === null || publicAuthority === null) return null;
  return {
    connectionString: publicConnectionString(database, currentLogin(ctx, database), { host, port }),
    certificateAuthority: publicAuthority,
  };
}

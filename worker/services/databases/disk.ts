import { eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { DiskUse } from "../../../protocol/api/disk.ts";
import type { Ctx } from "../../ctx.ts";
import { databases } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { measureDisk, selectDatabasesOnDisk } from "../running/disk-use.ts";

/** What a database takes of its host's disk: data and logs. */
export async function databaseDisk(ctx: Ctx, { id: databaseId }: ById): Promise<DiskUse> {
  const [found] = await selectDatabasesOnDisk(ctx).where(eq(databases.id, idIn("database", databaseId)));
  const database = requireOwned(ctx, found);
  return (await measureDisk(ctx, [database]))(database);
}

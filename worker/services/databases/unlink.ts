import { and, eq } from "drizzle-orm";
import type { DatabaseUnlinked, DatabaseUnlinkQuery } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseLinks } from "../../db/schema.ts";
import { siteIdOf } from "../sites/owned.ts";
import { databaseOwnedBy } from "./owned.ts";

/** The variable goes from the site's next container on. */
export async function unlinkDatabase(
  ctx: Ctx,
  databaseId: string,
  { siteId }: DatabaseUnlinkQuery,
): Promise<DatabaseUnlinked> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const gone = await ctx.db
    .delete(databaseLinks)
    .where(
      and(
        eq(databaseLinks.databaseId, database.id),
        siteId === undefined ? undefined : eq(databaseLinks.siteId, siteIdOf(siteId)),
      ),
    )
    .returning({ siteId: databaseLinks.siteId });
  return { id: database.id, unlinked: gone.map((link) => link.siteId) };
}

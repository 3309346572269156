import type { ById } from "../../../protocol/api/common.ts";
import { and, eq } from "drizzle-orm";
import type { DatabaseUnlinked, DatabaseUnlinkQuery } from "../../../protocol/api/databases.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { databaseLinks } from "../../db/schema.ts";
import { idIn } from "../owned.ts";
import { databaseOwnedBy } from "./owned.ts";

/** Removes the variable, effective from the site's next container. */
export async function unlinkDatabase(
  ctx: Ctx,
  { id: databaseId, siteId }: ById & DatabaseUnlinkQuery,
): Promise<DatabaseUnlinked> {
  const database = await databaseOwnedBy(ctx, databaseId);
  const { gone } = await batch(ctx, {
    gone: ctx.db
      .delete(databaseLinks)
      .where(
        and(
          eq(databaseLinks.databaseId, database.id),
          siteId === undefined ? undefined : eq(databaseLinks.siteId, idIn("site", siteId)),
        ),
      )
      .returning({ siteId: databaseLinks.siteId }),
  });
  return { id: database.id, unlinked: gone.map((link) => link.siteId) };
}

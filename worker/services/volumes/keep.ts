import { sql } from "drizzle-orm";
import type { Volume } from "../../../protocol/api/volumes.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";

/** A statement for the batch that sets a site's volumes: they belong to the site until they are deleted. */
export const keepVolumes = (ctx: Ctx, siteId: Id<"site">, volumes: readonly Volume[]) =>
  ctx.statement(sql`
    INSERT OR IGNORE INTO site_volumes (site_id, name, created_at)
    SELECT s.id, v.value, ${ctx.now().getTime()}
    FROM sites s, json_each(${JSON.stringify(volumes.map(({ name }) => name))}) v WHERE s.id = ${siteId}`);

import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import type { SiteInFull } from "../../../protocol/api/sites.ts";
import type { Ctx, Db } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { sites } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { selectRecords, siteView, type SiteRecord } from "./view.ts";

/** One round trip with one statement. */
export async function getSite(ctx: Ctx, { id: siteId }: ById): Promise<SiteInFull> {
  const {
    site: [site],
  } = await batch(ctx, {
    site: ctx.hot(recordById, { id: idIn("site", siteId) }),
  });
  return siteInFull(ctx, requireOwned(ctx, site));
}

export const siteInFull = (ctx: Ctx, site: SiteRecord): SiteInFull => ({
  ...siteView(ctx, site),
  dockerfile: site.dockerfile,
});

export const recordById = (db: Db) => selectRecords(db).where(eq(sites.id, sql.placeholder("id")));

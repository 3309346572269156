import { eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { DiskUse } from "../../../protocol/api/disk.ts";
import type { Ctx } from "../../ctx.ts";
import { sites } from "../../db/schema.ts";
import { idIn, requireOwned } from "../owned.ts";
import { measureDisk, selectSitesOnDisk } from "../running/disk-use.ts";

/** What a site takes of its host's disk: data, images, logs and build cache. */
export async function siteDisk(ctx: Ctx, { id: siteId }: ById): Promise<DiskUse> {
  const [found] = await selectSitesOnDisk(ctx).where(eq(sites.id, idIn("site", siteId)));
  const site = requireOwned(ctx, found);
  return (await measureDisk(ctx, [site]))(site);
}

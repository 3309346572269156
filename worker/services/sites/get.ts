import { and, asc, desc, eq } from "drizzle-orm";
import type { Site } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import { deployments, domains, siteEnvVersions } from "../../db/schema.ts";
import { requireOwned } from "../owned.ts";
import { siteById, siteIdOf } from "./owned.ts";
import { newestEnv, shownInRecord, siteView } from "./view.ts";

/** One round trip: the site and all that its record names. */
export async function getSite(ctx: Ctx, siteId: string): Promise<Site> {
  const id = siteIdOf(siteId);
  const [[site], shown, [env], names] = await ctx.db.batch([siteById(ctx, id), ...ofRecord(ctx, id)]);
  return siteView(ctx, requireOwned(ctx, site), shown, env?.entries ?? [], names);
}

/** Queries for one batch: what the record of a site shows beside its own row. */
export const ofRecord = (ctx: Ctx, id: Id<"site">) =>
  [
    ctx.db
      .select()
      .from(deployments)
      .where(and(eq(deployments.siteId, id), shownInRecord))
      .orderBy(desc(deployments.number)),
    ctx.db
      .select()
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, id), newestEnv)),
    ctx.db.select().from(domains).where(eq(domains.siteId, id)).orderBy(asc(domains.id)),
  ] as const;

import { asc, eq } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { DomainList } from "../../../protocol/api/domains.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains } from "../../db/schema.ts";
import { requireOwned } from "../owned.ts";
import { siteById, siteIdOf } from "../sites/owned.ts";
import { domainView } from "./view.ts";

/** All domains of the site, oldest first. */
export async function listDomains(ctx: Ctx, { id: siteId }: ById): Promise<DomainList> {
  const id = siteIdOf(siteId);
  const {
    found: [found],
    rows,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    rows: ctx.db.select().from(domains).where(eq(domains.siteId, id)).orderBy(asc(domains.id)),
  });
  const site = requireOwned(ctx, found);
  return { data: rows.map((row) => domainView(ctx, site, row)) };
}

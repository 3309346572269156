import type { Domain } from "../../../protocol/api/sites.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { domains } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { base62 } from "../../domain/tokens.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domainView } from "./view.ts";

const maxDomains = 50;

/**
 * Answers with the TXT record that proves ownership; the domain is served after verification. `total`: the number of
 * domains.
 */
export async function addDomain(ctx: Ctx, site: SiteRow, name: string, total: number): Promise<Domain> {
  for (const own of [ctx.config.SITE_URL, ctx.config.WEBHOOK_HOST, ctx.config.SITES_ORIGIN]) {
    const { hostname } = new URL(own);
    if (name === hostname || name.endsWith(`.${hostname}`))
      throw invalid("domain", "this name belongs to the service itself");
  }
  if (total >= maxDomains)
    throw conflict(`A site can have at most ${maxDomains} domains. Remove some first.`);
  const row = {
    id: ctx.newId("domain"),
    siteId: site.id,
    name,
    challenge: `berth-verify=${base62(ctx.random(16))}`,
    verifiedAt: null,
    createdAt: ctx.now(),
  };
  const {
    made: [made],
  } = await batch(ctx, {
    made: ctx.db.insert(domains).values(row).onConflictDoNothing().returning(),
  });
  if (!made) throw conflict("This domain was added concurrently. Try again.");
  return domainView(ctx, site, made);
}

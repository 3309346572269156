import { eq } from "drizzle-orm";
import type { Dns } from "../../../protocol/api/dns.ts";
import { sitesDomain } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { dnsZones } from "../../db/schema.ts";

/** The state of the sites' domain, for operators. */
export async function getDns(ctx: Ctx): Promise<Dns> {
  const domain = sitesDomain(ctx.config);
  const [zone] = await ctx.db.select().from(dnsZones).where(eq(dnsZones.id, domain));
  const isManaged = ctx.config.DNS_PROVIDER !== "none";
  const row = isManaged ? zone : undefined;
  return {
    domain,
    provider: ctx.config.DNS_PROVIDER,
    recordCount: row?.recordCount ?? 0,
    comparedAt: row?.syncedAt?.toISOString() ?? null,
    error: row?.error ?? null,
    errorSince: row?.errorSince?.toISOString() ?? null,
    conflicts: row?.conflicts ?? [],
  };
}

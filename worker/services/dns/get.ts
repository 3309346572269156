import { eq } from "drizzle-orm";
import type { Dns } from "../../../protocol/api/dns.ts";
import { sitesDomain, sitesWildcard } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { certificates, dnsZones } from "../../db/schema.ts";
import { renewAt } from "../../domain/certificates.ts";

/** The state of the sites' domain, for operators. */
export async function getDns(ctx: Ctx): Promise<Dns> {
  const domain = sitesDomain(ctx.config);
  const {
    zones: [zone],
    found: [found],
  } = await batch(ctx, {
    zones: ctx.db.select().from(dnsZones).where(eq(dnsZones.id, domain)),
    found: ctx.db
      .select()
      .from(certificates)
      .where(eq(certificates.id, sitesWildcard(ctx.config))),
  });
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
    certificate: isManaged && found ? certificateView(found) : null,
  };
}

function certificateView(row: typeof certificates.$inferSelect): Dns["certificate"] {
  const { notBefore, notAfter } = row;
  return {
    name: row.id,
    issuer: row.issuer,
    notBefore: notBefore?.toISOString() ?? null,
    notAfter: notAfter?.toISOString() ?? null,
    renewAt: notBefore && notAfter ? renewAt({ notBefore, notAfter }).toISOString() : null,
    step: row.step,
    error: row.error,
    errorSince: row.errorSince?.toISOString() ?? null,
    nextAttemptAt: row.error === null ? null : row.nextAt.toISOString(),
  };
}

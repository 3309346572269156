import { and, desc, eq, isNotNull, sql } from "drizzle-orm";
import type { Certificate } from "../../../protocol/agent/messages.ts";
import type { Id } from "../../../protocol/ids.ts";
import { sitesDomain } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { certificates } from "../../db/schema.ts";

/** As many as one message holds. */
const maxCertificates = 100;

/** The certificates that the host serves, with their keys: that of the sites' own names, and of wildcards of sites that it has. */
export async function issuedCertificates(ctx: Ctx, hostId: Id<"host">): Promise<Certificate[]> {
  const isOwn = eq(certificates.id, `*.${sitesDomain(ctx.config)}`);
  const rows = await ctx.db
    .select()
    .from(certificates)
    .where(
      and(
        isNotNull(certificates.chain),
        sql`(${isOwn} OR EXISTS (SELECT 1 FROM domains d JOIN sites s ON s.id = d.site_id
          WHERE d.name = certificates.id AND d.verified_at IS NOT NULL AND s.status <> 'DELETING'
            AND (s.host_id = ${hostId} OR s.move_host_id = ${hostId}
              OR (s.leaving_host_id = ${hostId} AND s.leave_at > ${ctx.now().getTime()}))))`,
      ),
    )
    .orderBy(desc(isOwn), certificates.notBefore)
    .limit(maxCertificates);
  return rows.flatMap(({ id: name, chain, keySealed, notAfter }) =>
    chain !== null && keySealed !== null && notAfter !== null
      ? {
          name,
          chain,
          key: ctx.secrets.open(keySealed, `certificates.key:${name}`),
          notAfter: notAfter.toISOString(),
        }
      : [],
  );
}

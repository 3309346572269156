import { and, count, desc, eq, inArray, isNotNull, or, sql } from "drizzle-orm";
import type { AwaitedCertificate, Certificate } from "../../../protocol/agent/certificates.ts";
import type { Id } from "../../../protocol/ids.ts";
import { sitesWildcard } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { certificates, hosts } from "../../db/schema.ts";
import { ownCertificates } from "../../domain/certificates.ts";
import { issuesWildcards, wildcardsOnly } from "./reconcile.ts";

/** As many as one message holds, with a key each. */
const maxCertificates = 100;
const maxChainsBytes = 640 * 1024;

/**
 * The certificates that the host is given, with their keys: that of the sites' own names, of wildcards of sites that it has, and of
 * custom domains of sites that it is deploying for a move, whose names do not lead to it yet: it could not obtain any.
 */
export async function issuedCertificates(ctx: Ctx, hostId: Id<"host">): Promise<Certificate[]> {
  const isOwn = eq(certificates.id, sitesWildcard(ctx.config));
  const now = ctx.now().getTime();
  const rows = await ctx.db
    .select()
    .from(certificates)
    .where(
      and(
        isNotNull(certificates.chain),
        or(
          and(
            wildcardsOnly,
            sql`(${isOwn} OR EXISTS (SELECT 1 FROM domains d JOIN sites s ON s.id = d.site_id
              WHERE d.name = certificates.id AND d.verified_at IS NOT NULL AND s.status <> 'DELETING'
                AND (s.host_id = ${hostId} OR s.move_host_id = ${hostId}
                  OR (s.leaving_host_id = ${hostId} AND s.leave_at > ${now}))))`,
          ),
          sql`certificates.id IN (SELECT d.name FROM jobs j JOIN deployments m ON m.id = j.deployment_id
            JOIN sites s ON s.id = j.site_id JOIN domains d ON d.site_id = s.id
            WHERE j.host_id = ${hostId} AND m.trigger = 'move' AND j.status = 'LEASED'
              AND d.verified_at IS NOT NULL AND s.status <> 'DELETING')
            AND certificates.not_after > ${now}`,
        ),
      ),
    )
    .orderBy(desc(isOwn), desc(wildcardsOnly), certificates.notBefore)
    .limit(maxCertificates);
  let bytes = 0;
  return rows.flatMap(({ id: name, chain, keySealed, notAfter }) =>
    chain !== null && keySealed !== null && notAfter !== null && (bytes += chain.length) <= maxChainsBytes
      ? {
          name,
          chain,
          key: ctx.secrets.open(keySealed, `certificates.key:${name}`),
          notAfter: notAfter.toISOString(),
        }
      : [],
  );
}

/**
 * That of the sites' own names, while it is being issued for the first time. Sites of before that had certificates of their own, which are
 * renewed; of those after it, the first do.
 */
export async function awaitedCertificate(ctx: Ctx): Promise<AwaitedCertificate | null> {
  if (!issuesWildcards(ctx)) return null;
  const name = sitesWildcard(ctx.config);
  const [row] = await ctx.db.select().from(certificates).where(eq(certificates.id, name));
  if (row && row.chain !== null) return null;
  const since = row?.errorSince ?? row?.orderedAt ?? ctx.now();
  const [active] = await ctx.db
    .select({ count: count() })
    .from(hosts)
    .where(inArray(hosts.status, ["ACTIVE", "DRAINING"]));
  const own = ownCertificates(ctx.now().getTime() - since.getTime(), Math.max(1, active?.count ?? 0));
  return { name, since: since.toISOString(), own };
}

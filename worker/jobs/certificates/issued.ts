import { and, asc, count, desc, eq, inArray, isNotNull, ne, or, sql } from "drizzle-orm";
import type { AwaitedCertificate, Certificate } from "../../../protocol/agent/certificates.ts";
import type { Id } from "../../../protocol/ids.ts";
import { sitesWildcard } from "../../adapters/dns-zone/index.ts";
import type { Ctx } from "../../ctx.ts";
import { certificates, domains, hosts, sites } from "../../db/schema.ts";
import { ownCertificates } from "../../domain/certificates.ts";
import { issuesWildcards, wildcardsOnly } from "./reconcile.ts";

/** As many as one message holds, with a key each. */
const maxCertificates = 100;
const maxChainsBytes = 640 * 1024;

/**
 * Those that the host is given. If there are too many wildcards, accounts take turns, so that one with many keeps out nobody else's; those
 * of an account in the order in which they were proved, which a renewal does not change.
 */
function givenTo(ctx: Ctx, hostId: Id<"host">) {
  const isOwn = eq(certificates.id, sitesWildcard(ctx.config));
  const now = ctx.now().getTime();
  const turn = sql`row_number() OVER (PARTITION BY ${sites.accountId}
    ORDER BY ${wildcardsOnly} DESC, ${domains.verifiedAt}, ${domains.id})`;
  return ctx.db
    .select({
      name: certificates.id,
      chain: certificates.chain,
      keySealed: certificates.keySealed,
      notAfter: certificates.notAfter,
    })
    .from(certificates)
    .leftJoin(domains, and(eq(domains.name, certificates.id), isNotNull(domains.verifiedAt)))
    .leftJoin(sites, and(eq(sites.id, domains.siteId), ne(sites.status, "DELETING")))
    .where(
      and(
        isNotNull(certificates.chain),
        or(
          isOwn,
          and(
            wildcardsOnly,
            sql`(${sites.hostId} = ${hostId} OR ${sites.moveHostId} = ${hostId}
              OR (${sites.leavingHostId} = ${hostId} AND ${sites.leaveAt} > ${now}))`,
          ),
          sql`${sites.id} IN (SELECT j.site_id FROM jobs j JOIN deployments m ON m.id = j.deployment_id
              WHERE j.host_id = ${hostId} AND m.trigger = 'move' AND j.status = 'LEASED')
            AND ${certificates.notAfter} > ${now}`,
        ),
      ),
    )
    .orderBy(desc(isOwn), desc(wildcardsOnly), turn, asc(domains.verifiedAt))
    .limit(maxCertificates);
}

/** Whether the host has no room for the certificate of this wildcard, which has been issued. */
export const isLeftOut = async (ctx: Ctx, hostId: Id<"host">, name: string): Promise<boolean> =>
  (await givenTo(ctx, hostId)).every((given) => given.name !== name);

/**
 * The certificates that the host is given, with their keys: that of the sites' own names, of wildcards of sites that it has, and of
 * custom domains of sites that it is deploying for a move, whose names do not lead to it yet: it could not obtain any.
 */
export async function issuedCertificates(ctx: Ctx, hostId: Id<"host">): Promise<Certificate[]> {
  const rows = await givenTo(ctx, hostId);
  let bytes = 0;
  return rows.flatMap(({ name, chain, keySealed, notAfter }) =>
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

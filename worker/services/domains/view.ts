import { sql } from "drizzle-orm";
import type { Domain } from "../../../protocol/api/domains.ts";
import type { DomainStatus } from "../../../protocol/states.ts";
import { isWildcard } from "../../../protocol/wildcards.ts";
import type { Ctx } from "../../ctx.ts";
import type { domains, sites } from "../../db/schema.ts";
import type { ProofRecord } from "../../domain/domain-check.ts";
import { challengeName } from "../../domain/certificates.ts";
import { displayName } from "../../domain/domain-names.ts";
import { releaseAt } from "../../domain/domain-states.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { siteHostname } from "../../domain/slug.ts";

export type DomainRow = typeof domains.$inferSelect;

export const statusOf = (row: Pick<DomainRow, "verifiedAt" | "state">): DomainStatus =>
  row.verifiedAt ? row.state : "PENDING_VERIFICATION";

/** Joined for the same reason as a site's URL. */
export const challengeOf = (name: string): string => ["_berth-challenge", name].join(".");

/** The record that proves that the name belongs to the owner of the site. That of a wildcard lets us prove it to authorities. */
export const proofRecord = (row: Pick<DomainRow, "name" | "provedAs" | "challenge">): ProofRecord => ({
  ...(isWildcard(row.name)
    ? { type: "CNAME", name: challengeName(row.name) }
    : { type: "TXT", name: challengeOf(row.provedAs ?? row.name) }),
  value: row.challenge,
});

/** The name that the domain's records lead to. */
export const targetOf = (ctx: Ctx, site: Pick<typeof sites.$inferSelect, "slug">): string =>
  siteHostname(ctx.config.SITES_ORIGIN, site.slug);

const notLookedAt = {
  code: "not_looked_at",
  message: "DNS has not been checked yet. That happens within a minute, or immediately when you verify it.",
} as const;

export const domainView = (
  ctx: Ctx,
  site: Pick<typeof sites.$inferSelect, "slug">,
  row: DomainRow,
): Domain => ({
  id: row.id,
  domain: row.name,
  displayName: displayName(row.name),
  status: statusOf(row),
  problems: row.checkedAt === null && !row.verifiedAt ? [notLookedAt] : row.problems,
  record: proofRecord(row),
  target: targetOf(ctx, site),
  redirectTo: row.redirectTo,
  certificate: row.certificate,
  verifiedAt: isoTime(row.verifiedAt),
  checkedAt: isoTime(row.checkedAt),
  nextCheckAt: isoTime(row.nextCheckAt),
  releaseAt: row.lostSince && isoTime(releaseAt(row.lostSince)),
  createdAt: isoTime(row.createdAt),
});

/** All domains of the site in the outer query, as JSON that `domainsOf` reads. */
export const domainsOfSite = sql`(SELECT json_group_array(json_object('id', id, 'siteId', site_id, 'name', name,
  'challenge', challenge, 'provedAs', proved_as, 'verifiedAt', verified_at, 'createdAt', created_at, 'redirectTo', redirect_to, 'state', state,
  'problems', json(problems), 'certificate', json(certificate), 'checkedAt', checked_at, 'nextCheckAt', next_check_at,
  'looks', looks, 'lostSince', lost_since)) FROM (SELECT * FROM domains WHERE site_id = sites.id ORDER BY id))`;

const times = ["verifiedAt", "createdAt", "checkedAt", "nextCheckAt", "lostSince"] as const;

export function domainsOf(json: string): DomainRow[] {
  const rows = JSON.parse(json) as (Record<string, unknown> &
    Record<(typeof times)[number], number | null>)[];
  return rows.map((row) => {
    const read = times.map((name) => [name, row[name] === null ? null : new Date(row[name])] as const);
    return { ...row, ...Object.fromEntries(read) } as unknown as DomainRow;
  });
}

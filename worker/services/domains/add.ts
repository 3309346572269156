import { and, inArray, sql } from "drizzle-orm";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { isWildcard } from "../../../protocol/wildcards.ts";
import { sitesDomain } from "../../adapters/dns-zone/index.ts";
import { delegationName } from "../../domain/certificates.ts";
import { circularRedirect } from "../../domain/redirect-loops.ts";
import { siteHostname } from "../../domain/slug.ts";
import { isApex, isBelow, isPublicSuffix, pairOf } from "../../domain/domain-names.ts";
import { base62 } from "../../domain/tokens.ts";
import { issuesWildcards } from "../../jobs/certificates/reconcile.ts";
import { requireKept } from "../sites/owned.ts";
import type { DomainRow } from "./view.ts";

const maxDomains = 50;

type Added = { domain: string; redirectTo?: string | undefined; pair?: boolean | undefined };

/**
 * Adds a domain to the site, and with `pair` the other of example.com and www.example.com. One record of ownership proves both,
 * also where the other is there already. It is served after verification.
 * @param others the domains of the site. @throws AppError invalid_request, conflict
 */
export async function addDomain(
  ctx: Ctx,
  site: SiteRow,
  { domain, redirectTo, pair = false }: Added,
  others: readonly Pick<DomainRow, "name" | "challenge">[],
): Promise<DomainRow> {
  requireKept(ctx, site);
  refuseForeign(ctx, domain);
  if (
    redirectTo !== undefined &&
    (redirectTo === domain || isWildcard(redirectTo) || !others.some(({ name }) => name === redirectTo))
  )
    throw invalid("redirectTo", "another domain of this site, added before this one");
  const other = pairOf(domain);
  if (pair && other === null)
    throw invalid("pair", "only example.com and www.example.com are a pair: add this domain alone");
  const there = others.find(({ name }) => name === other);
  if (pair && there)
    throw conflict(
      `${there.name} is a domain of this site already. Add ${domain} alone, or remove ${there.name} first.`,
    );
  const random = ctx.random(16);
  const challenge = isWildcard(domain)
    ? delegationName(Buffer.from(random).toString("hex"), sitesDomain(ctx.config))
    : (there?.challenge ?? `berth-verify=${base62(random)}`);
  const wanted = [
    { name: domain, redirectTo: redirectTo ?? null },
    ...(pair && other !== null ? [{ name: other, redirectTo: domain }] : []),
  ];
  if (others.length + wanted.length > maxDomains)
    throw conflict(`A site can have at most ${maxDomains} domains. Remove some first.`);
  refuseCircle(ctx, site, [...others, ...wanted]);
  const now = ctx.now();
  const rows = wanted.map((one) => ({
    ...one,
    // The record of the name without www. proves both.
    provedAs: (pair || there) && !isApex(one.name) ? pairOf(one.name) : null,
    id: ctx.newId("domain"),
    siteId: site.id,
    challenge,
    createdAt: now,
    nextCheckAt: new Date(now.getTime() + 60_000),
  }));
  const ids = rows.map(({ id }) => id);
  const { made } = await batch(ctx, {
    made: ctx.db.insert(domains).values(rows).onConflictDoNothing().returning(),
    // A pair is added as a whole: a name that was added meanwhile has a record of its own, and does not redirect.
    undone: ctx.db
      .delete(domains)
      .where(
        and(
          inArray(domains.id, ids),
          sql`(SELECT count(*) FROM domains WHERE ${inArray(domains.id, ids)}) < ${ids.length}`,
        ),
      ),
  });
  const added = made.find(({ name }) => name === domain);
  if (!added || made.length < rows.length) throw conflict("This domain was added concurrently. Try again.");
  return added;
}

/** A redirect to this name, which was no loop so far. */
function refuseCircle(ctx: Ctx, { slug, ingress }: SiteRow, names: readonly { name: string }[]): void {
  const own = siteHostname(ctx.config.SITES_ORIGIN, slug);
  const redirects = ingress.redirects ?? [];
  const circular = redirects[circularRedirect(redirects, [own, ...names.map(({ name }) => name)]) ?? -1];
  if (circular)
    throw conflict(
      `The site redirects ${circular.from} to ${circular.to}, which would lead back to itself with this domain. Remove or change the redirect first.`,
    );
}

/** Names that nobody can prove alone, or that are the installation's. */
function refuseForeign(ctx: Ctx, name: string): void {
  for (const own of [ctx.config.SITE_URL, ctx.config.WEBHOOK_HOST, ctx.config.SITES_ORIGIN])
    if (isBelow(name, new URL(own).hostname))
      throw invalid("domain", "this name belongs to the service itself");
  if (isPublicSuffix(name))
    throw invalid("domain", "anybody can register names below this one: add a name that you registered");
  if (isWildcard(name) && !issuesWildcards(ctx))
    throw invalid(
      "domain",
      "a wildcard needs a certificate by DNS-01, and this installation has no DNS provider: add each name separately",
    );
}

import { and, eq, isNotNull, sql, type SQL } from "drizzle-orm";
import type { IngressChange, IngressRules } from "../../../protocol/api/ingress.ts";
import type { Id } from "../../../protocol/ids.ts";
import { isWildcard } from "../../../protocol/wildcards.ts";
import type { Ctx } from "../../ctx.ts";
import type { SiteRow } from "../../db/rows.ts";
import { domains, sites } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { basicAuthHash } from "../../domain/basic-auth.ts";
import { circularRedirect } from "../../domain/redirect-loops.ts";
import { siteHostname } from "../../domain/slug.ts";

const at = (name: keyof IngressChange) => `settings.ingress.${name}`;

/** The query for the site's verified names. */
export const verifiedNames = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ name: domains.name })
    .from(domains)
    .where(and(eq(domains.siteId, siteId), isNotNull(domains.verifiedAt)));

/** The query for all of the site's domains, also those that nobody has proved yet. */
export const addedNames = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ name: domains.name, verifiedAt: domains.verifiedAt })
    .from(domains)
    .where(eq(domains.siteId, siteId));

/**
 * The column's next value: each setting that is named is replaced as a whole or removed, also where another change is
 * written at the same time. @throws AppError invalid_request
 */
export function changedIngress(
  ctx: Ctx,
  site: SiteRow,
  added: readonly { name: string; verifiedAt: Date | null }[],
  { basicAuth, ...change }: IngressChange,
): SQL {
  const own = siteHostname(ctx.config.SITES_ORIGIN, site.slug);
  const single = [own, ...added.flatMap(({ name, verifiedAt }) => (verifiedAt ? name : []))].filter(
    (name) => !isWildcard(name),
  );
  if (change.primaryDomain && !single.includes(change.primaryDomain))
    throw invalid(
      at("primaryDomain"),
      `${change.primaryDomain} is not a verified name of this site. It has: ${single.join(", ")}.`,
    );
  if ((change.httpsOnly === true || change.hsts) && !ctx.config.SITES_ORIGIN.startsWith("https:"))
    throw invalid(at(change.hsts ? "hsts" : "httpsOnly"), "this installation serves sites by plain http");
  const circular = circularRedirect(change.redirects ?? [], [own, ...added.map(({ name }) => name)]);
  if (circular !== null)
    throw invalid(
      `${at("redirects")}.${circular}`,
      "leads back to itself, directly or by way of other redirects",
    );
  const written: Partial<Record<keyof IngressRules, unknown>> = {
    ...change,
    ...(basicAuth !== undefined && {
      basicAuth: basicAuth && {
        username: basicAuth.username,
        hash: basicAuthHash(basicAuth.password, ctx.random(16)),
      },
    }),
  };
  const paths = Object.keys(written).map((name) => sql`${`$.${name}`}`);
  // RFC 7396 would merge objects, such as headers, key by key.
  return sql`json_patch(json_remove(${sites.ingress}, ${sql.join(paths, sql`, `)}), ${JSON.stringify(written)})`;
}

import { desc, eq } from "drizzle-orm";
import { gitSecrets } from "../../../protocol/git-token.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { siteEnvVersions } from "../../db/schema.ts";
import { requireOwned } from "../owned.ts";
import { keptEnvVersions } from "../sites/forget-env.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteById, siteIdOf } from "../sites/owned.ts";
import { lastMove } from "./last-move.ts";

/** The caller's site with what is to be masked in what it writes. @throws AppError not_found, forbidden */
export async function siteAndMasks(
  ctx: Ctx,
  siteId: string,
): Promise<{ site: SiteRow; masks: string[]; movedAt: Date | null }> {
  const id = siteIdOf(siteId);
  const [[found], environments, [move]] = await ctx.db.batch([
    siteById(ctx, id),
    newestEnvironments(ctx, id),
    lastMove(ctx, id),
  ]);
  const site = requireOwned(ctx, found);
  return { site, masks: masksOf(ctx, site, environments), movedAt: move?.at ?? null };
}

/** What is to be masked in what a site wrote, for whoever is no customer. */
export async function masksOfSite(ctx: Ctx, id: Id<"site">): Promise<string[]> {
  const [[site], environments] = await ctx.db.batch([siteById(ctx, id), newestEnvironments(ctx, id)]);
  return site ? masksOf(ctx, site, environments) : [];
}

const newestEnvironments = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ entries: siteEnvVersions.entries })
    .from(siteEnvVersions)
    .where(eq(siteEnvVersions.siteId, siteId))
    .orderBy(desc(siteEnvVersions.version))
    .limit(keptEnvVersions);

/**
 * Secrets that a build may have left in the image, so that the site may write them: variables of a build, now and earlier,
 * and the logins of its source. Its containers do not have them, so its host is told when somebody reads.
 */
function masksOf(
  ctx: Ctx,
  { id, gitTokenSealed, registryPasswordSealed }: SiteRow,
  environments: Awaited<ReturnType<typeof newestEnvironments>>,
): string[] {
  // What did not change is sealed as it was: opened once.
  const sealed = new Map(
    environments
      .flatMap(({ entries }) => entries)
      .filter(({ secret, scope }) => secret && scope !== "runtime")
      .map(({ key, value }) => [value, key]),
  );
  const values = [...sealed].map(([value, key]) => ctx.secrets.open(value, `site_env:${id}:${key}`));
  if (gitTokenSealed) values.push(...gitSecrets(ctx.secrets.open(gitTokenSealed, `sites.git_token:${id}`)));
  if (registryPasswordSealed)
    values.push(ctx.secrets.open(registryPasswordSealed, `sites.registry_password:${id}`));
  return [...new Set(values)];
}

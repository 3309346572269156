import { desc, eq } from "drizzle-orm";
import { gitSecrets } from "../../../protocol/git-token.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { siteEnvVersions } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { envOpener } from "../../jobs/sites/open-env.ts";
import { idIn, ownedWith } from "../owned.ts";
import { keptEnvVersions } from "../sites/forget-env.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteById } from "../sites/owned.ts";
import { lastMove } from "./last-move.ts";

/** What of a message of the host's link they may be: the rest is the question's. */
const maxMasksBytes = 768 * 1024;

/** The caller's site, and the secrets to mask in its output. @throws AppError not_found, forbidden, conflict */
export async function siteAndMasks(
  ctx: Ctx,
  siteId: string,
): Promise<{ site: SiteRow; masks: string[]; movedAt: Date | null }> {
  const id = idIn("site", siteId);
  const {
    owned: site,
    environments,
    move: [move],
  } = await ownedWith(ctx, siteById(ctx, id), {
    environments: newestEnvironments(ctx, id),
    move: lastMove(ctx, id),
  });
  const masks = masksOf(ctx, site, environments);
  if (Buffer.byteLength(JSON.stringify(masks)) > maxMasksBytes)
    throw conflict(
      `The secrets of the site's builds, with those of its last ${keptEnvVersions} sets of variables, are too large to be masked in what it wrote. Give large secrets the scope "runtime"; what they were before is masked until ${keptEnvVersions} changes later.`,
    );
  return { site, masks, movedAt: move?.at ?? null };
}

/** The secrets to mask in a site's output, for readers other than customers. */
export async function masksOfSite(ctx: Ctx, id: Id<"site">): Promise<string[]> {
  const {
    site: [site],
    environments,
  } = await batch(ctx, {
    site: siteById(ctx, id),
    environments: newestEnvironments(ctx, id),
  });
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
 * Secrets that a build may have left in the image, from where the site could print them: current and earlier build
 * variables, and the source's credentials. Its containers were not given them, so the host receives them with each
 * read.
 */
function masksOf(
  ctx: Ctx,
  { id, gitTokenSealed, registryPasswordSealed }: SiteRow,
  environments: Awaited<ReturnType<typeof newestEnvironments>>,
): string[] {
  // An unchanged value keeps its sealed text, so each text is opened once.
  const sealed = new Map(
    environments
      .flatMap(({ entries }) => entries)
      .filter(({ secret, scope }) => secret && scope !== "runtime")
      .map(({ key, value }) => [value, key]),
  );
  const open = envOpener(ctx, id);
  const values = [...sealed].map(([value, key]) => open({ key, value }));
  if (gitTokenSealed) values.push(...gitSecrets(ctx.secrets.open(gitTokenSealed, `sites.git_token:${id}`)));
  if (registryPasswordSealed)
    values.push(ctx.secrets.open(registryPasswordSealed, `sites.registry_password:${id}`));
  return [...new Set(values)];
}

import type { ById } from "../../../protocol/api/common.ts";
import { eq, sql } from "drizzle-orm";
import { buildOptionNames, type Site, type SiteSettings } from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { packs, sites } from "../../db/schema.ts";
import { invalid } from "../../domain/app-error.ts";
import { refuseTooManyReplicas } from "../../domain/replicas.ts";
import { refuseUnknownRegion, regionsOfHosts } from "../hosts/regions.ts";
import { queueRoutes } from "../domains/queue-routes.ts";
import { requireOwned } from "../owned.ts";
import { keepVolumes } from "../volumes/keep.ts";
import { recordById } from "./get.ts";
import { changedIngress, verifiedNames } from "./ingress-change.ts";
import { siteById, siteIdOf } from "./owned.ts";
import { refuseUnfetched } from "./refuse-unfetched.ts";
import { siteView } from "./view.ts";

const ofSource = {
  github: ["githubUrl", "branch", "gitToken", "submodules", "lfs"],
  dockerfile: ["dockerfile"],
  image: ["image", "registryUsername", "registryPassword"],
} as const;

/**
 * Applies from the next deployment, but for what the ingress does, which applies at once. Settings of other kinds of
 * sources are rejected.
 */
export async function setSiteSettings(
  ctx: Ctx,
  { id: siteId, settings }: ById & { settings: SiteSettings },
): Promise<Site> {
  const id = siteIdOf(siteId);
  const {
    found: [found],
    pack: [pack],
    regions,
    verified,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    verified: settings.ingress ? verifiedNames(ctx, id) : [],
    pack: packOf(ctx, id),
    regions: regionsOfHosts(ctx),
  });
  const site = requireOwned(ctx, found);
  refuseUnfetched(ctx, "settings.githubUrl", settings.githubUrl);
  refuseUnknownRegion("settings.region", settings.region, regions);
  if (settings.replicas !== undefined && pack)
    refuseTooManyReplicas("settings.replicas", settings.replicas, pack.memoryMb);
  for (const [type, names] of Object.entries(ofSource))
    for (const name of names)
      if (type !== site.deployType && settings[name] !== undefined)
        throw invalid(`settings.${name}`, `a site of type ${site.deployType} has no such setting`);
  const { gitToken, registryPassword, ingress, ...plain } = settings;
  const options = Object.fromEntries(
    buildOptionNames.flatMap((name) => (settings[name] === undefined ? [] : [[name, settings[name]]])),
  );
  const sealed = {
    ...(gitToken !== undefined && {
      gitTokenSealed: gitToken && ctx.secrets.seal(gitToken, `sites.git_token:${site.id}`),
    }),
    ...(registryPassword !== undefined && {
      registryPasswordSealed:
        registryPassword && ctx.secrets.seal(registryPassword, `sites.registry_password:${site.id}`),
    }),
  };
  const {
    changed: [changed],
  } = await batch(ctx, {
    sites: ctx.db
      .update(sites)
      .set({
        ...plain,
        ...sealed,
        // RFC 7396: null removes.
        buildOptions: sql`json_patch(${sites.buildOptions}, ${JSON.stringify(options)})`,
        ...(ingress && {
          ingress: changedIngress(
            ctx,
            site,
            verified.map(({ name }) => name),
            ingress,
          ),
        }),
        updatedAt: ctx.now(),
      })
      .where(eq(sites.id, site.id)),
    routes: ingress ? queueRoutes(ctx, site.id, sql`1`) : [],
    keepVolumes: keepVolumes(ctx, site.id, settings.volumes ?? []),
    changed: ctx.hot(recordById, { id: site.id }),
  });
  if (ingress && site.hostId) ctx.hosts.wake(site.hostId);
  return siteView(ctx, requireOwned(ctx, changed));
}

const packOf = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ memoryMb: packs.memoryMb })
    .from(packs)
    .where(eq(packs.id, sql`(SELECT pack_id FROM sites WHERE id = ${siteId})`));

import type { ById } from "../../../protocol/api/common.ts";
import { eq, or, sql } from "drizzle-orm";
import {
  buildOptionNames,
  buildSettingNames,
  settingsOfRestart,
  type SiteInFull,
  type SiteSettings,
} from "../../../protocol/api/sites.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { noneQueued } from "../../db/job-conditions.ts";
import type { SiteRow } from "../../db/rows.ts";
import { packs, sites } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { refuseTooManyReplicas } from "../../domain/replicas.ts";
import { refuseUnknownRegion, regionsOfHosts } from "../hosts/regions.ts";
import { queueRoutes } from "../../jobs/queue-routes.ts";
import { forgetOldBuilds } from "../../jobs/deployments/forget-builds.ts";
import { queueSiteJob } from "../../jobs/sites/queue.ts";
import { idIn, requireOwned } from "../owned.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { keepVolumes } from "../volumes/keep.ts";
import { recordById, siteInFull } from "./get.ts";
import { changedIngress, addedNames } from "./ingress-change.ts";
import { requireKept, siteById } from "./owned.ts";
import { refuseUnfetched } from "./refuse-unfetched.ts";

const ofSource = {
  github: ["githubUrl", "branch", "gitToken", "submodules", "lfs", ...buildSettingNames],
  dockerfile: ["dockerfile"],
  image: ["image", "registryUsername", "registryPassword"],
} as const;

/**
 * Applies from the next deployment, or from a restart that is queued with it, but for what the ingress does, which applies at
 * once. Settings of other kinds of sources are rejected.
 */
export async function setSiteSettings(
  ctx: Ctx,
  { id: siteId, settings, apply }: ById & { settings: SiteSettings; apply?: "now" | undefined },
): Promise<SiteInFull> {
  const id = idIn("site", siteId);
  const {
    found: [found],
    pack: [pack],
    regions,
    added,
  } = await batch(ctx, {
    found: siteById(ctx, id),
    added: settings.ingress ? addedNames(ctx, id) : [],
    pack: smallerPackOf(ctx, id),
    regions: regionsOfHosts(ctx),
  });
  const site = requireKept(ctx, found);
  refuseUnfetched(ctx, "settings.githubUrl", settings.githubUrl);
  refuseUnknownRegion("settings.region", settings.region, regions);
  if (settings.replicas !== undefined && pack)
    refuseTooManyReplicas(
      "settings.replicas",
      settings.replicas,
      pack.memoryMb,
      pack.isNext === 1 ? "the pack that the site changes to" : undefined,
    );
  for (const [type, names] of Object.entries(ofSource))
    for (const name of names)
      // null only unsets.
      if (type !== site.deployType && (settings[name] ?? null) !== null)
        throw invalid(`settings.${name}`, `a site of type ${site.deployType} has no such setting`);
  if (apply === "now") await demandAppliedNow(ctx, site, settings);
  const mark = ctx.newMark();
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
          ingress: changedIngress(ctx, site, added, ingress),
        }),
        mark,
        updatedAt: ctx.now(),
      })
      .where(eq(sites.id, site.id)),
    routes: ingress ? queueRoutes(ctx, site.id, sql`1`) : [],
    now: apply === "now" ? applyNow(ctx, site, settings, mark) : [],
    builds: settings.keptImages === undefined ? [] : forgetOldBuilds(ctx, site.id, sql`1`),
    keepVolumes: keepVolumes(ctx, site.id, settings.volumes ?? []),
    changed: ctx.hot(recordById, { id: site.id }),
  });
  if ((ingress || apply === "now") && site.hostId) ctx.hosts.wake(site.hostId);
  return siteInFull(ctx, requireOwned(ctx, changed));
}

/** @throws AppError invalid_request, payment_required; conflict if no version is there to apply them to */
async function demandAppliedNow(ctx: Ctx, site: SiteRow, settings: SiteSettings): Promise<void> {
  for (const name of Object.keys(settings))
    if (!(settingsOfRestart as readonly string[]).includes(name))
      throw invalid(`settings.${name}`, "takes effect with a deployment only: leave out `apply`");
  await refuseUnpaid(ctx, site);
  if (site.currentDeploymentId === null || (site.status !== "RUNNING" && site.status !== "STOPPED"))
    throw conflict(
      `A ${site.status} site has no version in service to apply this to: leave out \`apply\`, and its next deployment uses it.`,
    );
}

/** Statements that change the settings of the version in service, and restart it if it runs. */
const applyNow = (ctx: Ctx, site: SiteRow, settings: SiteSettings, mark: string) => [
  ctx.statement(sql`
    UPDATE deployments SET run = json_set(run${sql.join(
      settingsOfRestart.flatMap((name) =>
        settings[name] === undefined ? [] : [sql`, ${`$.${name}`}, json(${JSON.stringify(settings[name])})`],
      ),
    )})
    WHERE run IS NOT NULL AND id = (SELECT current_deployment_id FROM sites WHERE id = ${site.id} AND mark = ${mark})`),
  queueSiteJob(
    ctx,
    "site.restart",
    site.id,
    sql`s.mark = ${mark} AND s.status = 'RUNNING' AND s.wanted = 'RUNNING' AND ${noneQueued(sql`s.id`, "site.restart")}`,
  ),
];

/** The smaller one of its pack and of that which it changes to. */
const smallerPackOf = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ memoryMb: packs.memoryMb, isNext: sql<number>`${packs.id} <> ${sites.packId}` })
    .from(sites)
    .innerJoin(packs, or(eq(packs.id, sites.packId), eq(packs.id, sites.nextPackId)))
    .where(eq(sites.id, siteId))
    .orderBy(packs.memoryMb)
    .limit(1);

import type { ById } from "../../../protocol/api/common.ts";
import { and, asc, eq, sql } from "drizzle-orm";
import type { Volume } from "../../../protocol/api/volumes.ts";
import type { SiteVolumes } from "../../../protocol/api/site-volumes.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { deployments, jobs, siteVolumes } from "../../db/schema.ts";
import { idIn, ownedWith } from "../owned.ts";
import { siteById } from "../sites/owned.ts";
import { volumeBackupsView } from "./view.ts";

/** All volumes of the site, mounted or detached, with the sizes that the host reports. */
export async function listVolumes(ctx: Ctx, { id: siteId }: ById): Promise<SiteVolumes> {
  const id = idIn("site", siteId);
  const {
    owned: site,
    kept,
    current: [current],
    restoring,
  } = await ownedWith(ctx, siteById(ctx, id), {
    restoring: ctx.db
      .select({ volume: jobs.volume })
      .from(jobs)
      .where(and(eq(jobs.siteId, id), eq(jobs.kind, "volume.restore"), openJob)),
    kept: ctx.db.select().from(siteVolumes).where(eq(siteVolumes.siteId, id)).orderBy(asc(siteVolumes.name)),
    current: currentRunOf(ctx, id),
  });
  const answer =
    site.hostId === null || kept.length === 0
      ? null
      : await ctx.questions.ask(site.hostId, { kind: "volumes", siteId: id });
  const sizes = answer?.kind === "volumes" ? answer.volumes : [];
  const mountedNow = current?.run?.volumes ?? [];
  return {
    data: kept.map(({ name, ...row }) => ({
      name,
      mountPath: pathOf(mountedNow, name) ?? pathOf(site.volumes, name) ?? null,
      mounted: pathOf(mountedNow, name) !== undefined,
      sizeMb: sizes.find((one) => one.name === name)?.sizeMb ?? null,
      backups: volumeBackupsView({ name, ...row }),
      restoring: restoring.some((one) => one.volume === name),
      restoreError: row.restoreError,
    })),
  };
}

const pathOf = (volumes: Volume[], name: string) => volumes.find((one) => one.name === name)?.mountPath;

/** The volumes of the version in service. */
export const currentRunOf = (ctx: Ctx, siteId: Id<"site">) =>
  ctx.db
    .select({ run: deployments.run })
    .from(deployments)
    .where(eq(deployments.id, sql`(SELECT current_deployment_id FROM sites WHERE id = ${siteId})`));

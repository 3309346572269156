import { and, desc, eq, inArray, sql, type SQL } from "drizzle-orm";
import type { ById } from "../../../protocol/api/common.ts";
import type { DeploymentExplanation } from "../../../protocol/api/diagnosis.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { deployments, packs, runSettings, siteEnvVersions, sites } from "../../db/schema.ts";
import { envChanges } from "../../domain/env-changes.ts";
import { envOpener } from "../../jobs/sites/open-env.ts";
import { explainFailure, type Around } from "../../domain/failed-deployment.ts";
import { idIn, requireOwned } from "../owned.ts";
import { deploymentById } from "./owned.ts";
import { settingsChanges } from "./settings-changes.ts";
import { selectDeployments, type DeploymentRecord } from "./view.ts";

const shownLines = 40;
const readAtOnce = 1000;

/** Why a deployment failed, and what differs from the last one that did not: facts, gathered in one round trip. */
export async function explainDeployment(ctx: Ctx, { id: text }: ById): Promise<DeploymentExplanation> {
  const id = idIn("deployment", text);
  const siteId = sql`(SELECT site_id FROM deployments WHERE id = ${id})`;
  const wereLive = (side: SQL) => sql`${deployments.siteId} = ${siteId}
    AND ${deployments.number} ${side} (SELECT number FROM deployments WHERE id = ${id}) AND ${deployments.status} IN ('LIVE', 'SUPERSEDED')`;
  const [before, after] = [wereLive(sql`<`), wereLive(sql`>`)];
  const {
    found: [found],
    good: [good],
    later: [later],
    builds,
    environments,
    site: [site],
    larger: [larger],
  } = await batch(ctx, {
    found: deploymentById(ctx, id),
    good: selectDeployments(ctx).where(before).orderBy(desc(deployments.number)).limit(1),
    later: ctx.db.select({ id: deployments.id }).from(deployments).where(after).limit(1),
    builds: ctx.db
      .select({ id: deployments.id, build: deployments.build })
      .from(deployments)
      .where(
        sql`${deployments.id} IN (${id}, (SELECT id FROM deployments WHERE ${before} ORDER BY number DESC LIMIT 1))`,
      ),
    environments: ctx.db
      .select()
      .from(siteEnvVersions)
      .where(and(eq(siteEnvVersions.siteId, siteId), inArray(siteEnvVersions.version, versionsOf(id)))),
    site: ctx.db.select().from(sites).where(eq(sites.id, siteId)),
    larger: ctx.db
      .select({ id: packs.id, name: packs.name, memoryMb: packs.memoryMb })
      .from(packs)
      .where(
        sql`${packs.active} AND ${packs.kind} = 'site' AND ${packs.memoryMb} >
          (SELECT memory_mb FROM packs WHERE id = (SELECT pack_id FROM sites WHERE id = ${siteId}))`,
      )
      .orderBy(packs.memoryMb, packs.priceCents)
      .limit(1),
  });
  const deployment = requireOwned(ctx, found);
  const { cloneMs, buildMs, startMs, swapMs } = deployment;
  const around: Around = {
    healthCheckPath: site?.healthCheckPath ?? null,
    startTimeoutSeconds: site?.startTimeoutSeconds ?? null,
    largerPack: larger ?? null,
    // The version in service is what a failed deployment has left.
    lastGood: good?.mayComeBack === true && site?.currentDeploymentId !== good.id ? good : null,
  };
  const failed = deployment.status === "FAILED";
  const judged = failed
    ? explainFailure(
        {
          siteId: deployment.siteId,
          ref: deployment.ref,
          status: deployment.status,
          error: deployment.error,
          durations: { clone: cloneMs, build: buildMs, start: startMs, swap: swapMs },
          startedAt: deployment.startedAt,
        },
        around,
      )
    : { step: null, exitCode: null, outOfMemory: false, probe: null, cause: null, fixes: [] };
  const open = envOpener(ctx, deployment.siteId);
  const buildOf = (which: string) => builds.find((one) => one.id === which)?.build ?? null;
  const settings =
    good &&
    settingsChanges(
      { run: good.run, build: buildOf(good.id) },
      { run: deployment.run, build: buildOf(deployment.id) },
    );
  const entriesOf = (version: number) => environments.find((one) => one.version === version)?.entries ?? [];
  return {
    deployment: compared(deployment),
    failed,
    error: deployment.error,
    ...judged,
    // They would change what a later one works with.
    ...(later && { fixes: [] }),
    lastLines: await lastLines(ctx, id),
    lastGood: good ? compared(good) : null,
    changed: settings
      ? {
          commit: good.commit !== deployment.commit,
          environment: envChanges(entriesOf(good.envVersion), entriesOf(deployment.envVersion), open),
          settings: settings.differing.map(({ setting }) => setting),
          unknownSettings: settings.unknown,
        }
      : null,
    unapplied: runSettings.flatMap((name) => {
      const [deployed, now] = [deployment.run?.[name] ?? null, site?.[name] ?? null];
      const isApplied = deployment.run === null || JSON.stringify(deployed) === JSON.stringify(now);
      return isApplied ? [] : [{ setting: name, deployed, site: now }];
    }),
  };
}

/** The environments of the deployment and of the last successful one before it. */
const versionsOf = (id: Id<"deployment">) => sql`(
  SELECT env_version FROM deployments WHERE id = ${id}
  UNION ALL SELECT env_version FROM (SELECT env_version FROM deployments WHERE site_id = (SELECT site_id FROM deployments WHERE id = ${id})
    AND number < (SELECT number FROM deployments WHERE id = ${id}) AND status IN ('LIVE', 'SUPERSEDED') ORDER BY number DESC LIMIT 1))`;

const compared = (row: DeploymentRecord): DeploymentExplanation["deployment"] => ({
  id: row.id,
  number: row.number,
  status: row.status,
  trigger: row.trigger,
  commit: row.commit,
  commitMessage: row.commitMessage,
  finishedAt: row.finishedAt?.toISOString() ?? null,
});

async function lastLines(ctx: Ctx, id: Id<"deployment">): Promise<string[]> {
  let lines: string[] = [];
  for (let after = 0; ;) {
    const page = await ctx.logs.read(id, after, readAtOnce);
    lines = [...lines, ...page.map((line) => line.text)].slice(-shownLines);
    if (page.length < readAtOnce) return lines;
    after = page.at(-1)?.seq ?? after;
  }
}

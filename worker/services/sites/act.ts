import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { SiteActionAccepted, SitePatch } from "../../../protocol/api/sites.ts";
import { triggerOf, type Ctx } from "../../ctx.ts";
import { noneOpen, noneQueued } from "../../db/job-conditions.ts";
import { batch } from "../../db/batch.ts";
import { sites } from "../../db/schema.ts";
import { conflict, invalid } from "../../domain/app-error.ts";
import { refusedAction } from "../../domain/refused-action.ts";
import { siteEvents } from "../../domain/site-events.ts";
import { cancelDeployments, tellCancelled } from "../../jobs/deployments/cancel-all.ts";
import { reviseCancelled } from "../../jobs/request-cancel.ts";
import { queueSiteJob } from "../../jobs/sites/queue.ts";
import { roomAgain } from "../../jobs/hosts/placement.ts";
import { queueMove } from "../../jobs/hosts/queue-move.ts";
import { refuseUnpaid } from "../refuse-unpaid.ts";
import { deploySite } from "./deploy.ts";
import type { SiteRow } from "../../db/rows.ts";
import { siteOwnedBy } from "./owned.ts";

/** Starts, stops, restarts or deploys. The status changes when the host reports the result. */
export async function actOnSite(
  ctx: Ctx,
  { id: siteId, ...wanted }: ById & Extract<SitePatch, { action: unknown }>,
): Promise<SiteActionAccepted> {
  const site = await siteOwnedBy(ctx, siteId);
  switch (wanted.action) {
    case "deploy":
      if (wanted.ref !== undefined && site.deployType !== "github")
        throw invalid("ref", `a site of type ${site.deployType} has no branches`);
      return deploySite(ctx, site, triggerOf(ctx), { rebuild: wanted.rebuild, ref: wanted.ref });
    case "start":
      return startSite(ctx, site);
    case "stop":
      return stopSite(ctx, site);
    case "restart":
      return restartSite(ctx, site);
  }
}

/** Valid from STOPPED, from FAILED with an existing version, and while a stop is in progress. */
async function startSite(ctx: Ctx, site: SiteRow): Promise<SiteActionAccepted> {
  await refuseUnpaid(ctx, site);
  const { from, wanted } = siteEvents.startRequested;
  const mark = ctx.newMark();
  const room = roomAgain(sql`${ctx.now().getTime()}`);
  const {
    moved: [moved],
  } = await batch(ctx, {
    moved: ctx.db
      .update(sites)
      .set({
        wanted,
        mark,
        updatedAt: ctx.now(),
        ...room.set,
        // No host has its image, so the version is built again.
        status: sql`CASE WHEN (host_id IS NULL OR ${room.leaves}) AND ${inArray(sites.status, [...from])} THEN 'DEPLOYING' ELSE status END`,
      })
      .where(
        and(
          eq(sites.id, site.id),
          sql`${sites.currentDeploymentId} IS NOT NULL`,
          sql`(${inArray(sites.status, [...from])} AND ${noneOpen(site.id, "site.start")} OR (${sites.wanted} = 'STOPPED' AND ${inArray(sites.status, ["RUNNING", "DEPLOYING"])}))`,
        ),
      )
      .returning(),
    move: queueMove(
      ctx,
      sql`(SELECT id FROM sites WHERE id = ${site.id} AND mark = ${mark} AND host_id IS NULL)`,
    ),
    job: queueSiteJob(
      ctx,
      "site.start",
      site.id,
      sql`s.mark = ${mark} AND NOT EXISTS (SELECT 1 FROM jobs WHERE site_id = s.id AND kind = 'site.deploy' AND status = 'QUEUED' AND host_id IS NULL)`,
    ),
  });
  if (!moved) throw refusal("start", site);
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

/** Also cancels queued and running deployments: the last accepted command wins. */
async function stopSite(ctx: Ctx, site: SiteRow): Promise<SiteActionAccepted> {
  await refuseUnpaid(ctx, site);
  const { from, wanted } = siteEvents.stopRequested;
  const mark = ctx.newMark();
  const {
    moved: [moved],
    deployments: { waited, cancelling },
  } = await batch(ctx, {
    moved: ctx.db
      .update(sites)
      .set({
        wanted,
        mark,
        updatedAt: ctx.now(),
        // It runs nowhere, so there is no host to wait for.
        status: sql`CASE WHEN host_id IS NULL THEN ${siteEvents.stopped.to} ELSE status END`,
      })
      .where(and(eq(sites.id, site.id), inArray(sites.status, [...from]), ne(sites.wanted, wanted)))
      .returning(),
    stop: queueSiteJob(ctx, "site.stop", site.id, sql`s.mark = ${mark} AND s.host_id IS NOT NULL`),
    deployments: cancelDeployments(
      ctx,
      site.id,
      sql`(SELECT mark FROM sites WHERE id = ${site.id}) = ${mark}`,
    ),
  });
  if (!moved) throw refusal("stop", site);
  tellCancelled(ctx, waited);
  reviseCancelled(ctx, cancelling);
  if (moved.hostId) ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

async function restartSite(ctx: Ctx, site: SiteRow): Promise<SiteActionAccepted> {
  await refuseUnpaid(ctx, site);
  const { from, wanted } = siteEvents.restartRequested;
  const mark = ctx.newMark();
  const {
    moved: [moved],
  } = await batch(ctx, {
    moved: ctx.db
      .update(sites)
      .set({ mark, updatedAt: ctx.now() })
      .where(and(eq(sites.id, site.id), inArray(sites.status, [...from]), eq(sites.wanted, wanted)))
      .returning(),
    // A queued restart uses the latest state when it starts.
    job: queueSiteJob(
      ctx,
      "site.restart",
      site.id,
      sql`s.mark = ${mark} AND ${noneQueued(sql`s.id`, "site.restart")}`,
    ),
  });
  if (!moved) throw refusal("restart", site);
  ctx.hosts.wake(moved.hostId);
  return { id: moved.id, status: moved.status };
}

const refusal = (action: "start" | "stop" | "restart", site: SiteRow) =>
  conflict(
    site.currentDeploymentId === null &&
      (site.status === "FAILED" || (site.status === "STOPPED" && action !== "stop"))
      ? "No version of this site has run yet. Deploy it first."
      : refusedAction(action, { what: "site", ...site }),
  );

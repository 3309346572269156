import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, inArray, isNotNull, isNull, ne, or, sql } from "drizzle-orm";
import type { Host, HostRemoved, HostRemoveQuery } from "../../../protocol/api/hosts.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { openJob } from "../../db/job-conditions.ts";
import { batch } from "../../db/batch.ts";
import { deployments, hosts, sites } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";
import { lossWarning } from "../../domain/volume-notice.ts";
import { endOrphans, tellOrphans } from "../../jobs/commands/cancel-all.ts";
import { statusAfterDeployment } from "../../jobs/kinds/site-status.ts";
import { idIn } from "../owned.ts";
import { hostNamed } from "./named.ts";
import { queueMove } from "../../jobs/hosts/queue-move.ts";

const hasVolumes = sql.raw("EXISTS (SELECT 1 FROM site_volumes WHERE site_id = sites.id)");

/** Removes a drained, empty host, or one whose agent has never connected, or with `force` an unreachable one, and with `connected` any, whose sites are redeployed on other hosts. */
export async function removeHost(
  ctx: Ctx,
  { id: hostId, ...how }: ById & HostRemoveQuery,
): Promise<HostRemoved> {
  const [connected, loseVolumes] = [how.connected === "1", how.loseVolumes === "1"];
  const force = connected || how.force === "1";
  const id = idIn("host", hostId);
  const host = await hostNamed(ctx, id);
  if (force && !loseVolumes) await refuseLoss(ctx, host);
  const left = force ? await forceOut(ctx, id, { connected, loseVolumes }) : await takeOut(ctx, id);
  if (left) {
    ctx.hosts.disconnect(id);
    for (const other of left) ctx.hosts.tellPeers(other.id);
    return { id, removed: true };
  }
  if (force)
    throw conflict(
      `${host.name} is connected. Drain it, then remove it without force. If its token was stolen, remove it at once (connected=1).`,
    );
  throw conflict(
    host.status === "DRAINING"
      ? `${host.name} still has sites, remains of moved sites, running commands or databases (${host.siteCount} sites placed here): ${host.notice ?? "wait until they have moved."} If the host is dead, force its removal (force=1).`
      : `${host.name} accepts new sites. Drain it first. If the host is dead, force its removal (force=1).`,
  );
}

/** The hosts that end their connections with the removed one. */
const others = (ctx: Ctx) =>
  ctx.db
    .select({ id: hosts.id })
    .from(hosts)
    .where(and(ne(hosts.status, "REMOVED"), isNotNull(hosts.peerKey)));

async function takeOut(ctx: Ctx, id: Id<"host">): Promise<{ id: Id<"host"> }[] | null> {
  const { removed, left } = await batch(ctx, {
    removed: ctx.db
      .update(hosts)
      .set({ status: "REMOVED" })
      .where(
        and(
          eq(hosts.id, id),
          or(eq(hosts.status, "DRAINING"), isNull(hosts.connectedAt)),
          ne(hosts.status, "REMOVED"),
          sql`NOT EXISTS (SELECT 1 FROM sites WHERE host_id = ${id} OR move_host_id = ${id} OR leaving_host_id = ${id})`,
          sql`NOT EXISTS (SELECT 1 FROM databases WHERE host_id = ${id})`,
          sql`NOT EXISTS (SELECT 1 FROM jobs WHERE host_id = ${id} AND ${openJob})`,
        ),
      )
      .returning({ id: hosts.id }),
    left: others(ctx),
  });
  return removed.length > 0 ? left : null;
}

/** @throws AppError conflict if data would be lost */
async function refuseLoss(ctx: Ctx, host: Host): Promise<void> {
  if (host.volumeSiteCount + host.databaseCount === 0) return;
  const some = await ctx.db.all<{ name: string }>(
    sql`SELECT name FROM sites WHERE host_id = ${host.id} AND ${hasVolumes}
      UNION ALL SELECT name FROM databases WHERE host_id = ${host.id} ORDER BY name LIMIT 10`,
  );
  const names = some.map(({ name }) => name);
  throw conflict(lossWarning(host.name, names, host));
}

async function forceOut(
  ctx: Ctx,
  id: Id<"host">,
  { connected, loseVolumes }: { connected: boolean; loseVolumes: boolean },
): Promise<{ id: Id<"host"> }[] | null> {
  const now = ctx.now().getTime();
  const gone = sql`(SELECT status FROM hosts WHERE id = ${id}) = 'REMOVED'`;
  const reason = "Its host was removed.";
  const lostData = "Its host was removed together with the data. Start the database to get an empty one.";
  const ofOpenJobs = (column: string, kind: string) =>
    sql`(SELECT ${sql.raw(column)} FROM jobs WHERE host_id = ${id} AND kind = ${kind} AND ${openJob})`;
  const { removed, ended, lost, left } = await batch(ctx, {
    removed: ctx.db
      .update(hosts)
      .set({ status: "REMOVED" })
      .where(
        and(
          eq(hosts.id, id),
          ne(hosts.status, "REMOVED"),
          connected ? undefined : sql`(${hosts.connectedAt} IS NULL OR ${hosts.offlineSince} IS NOT NULL)`,
          loseVolumes
            ? undefined
            : sql`NOT EXISTS (SELECT 1 FROM sites WHERE host_id = ${id} AND ${hasVolumes})`,
        ),
      )
      .returning({ id: hosts.id }),
    ended: ctx.db
      .update(deployments)
      .set({ status: "FAILED", error: reason, finishedAt: ctx.now() })
      .where(
        and(
          gone,
          inArray(deployments.status, ["QUEUED", "BUILDING", "STARTING"]),
          sql`${deployments.id} IN ${ofOpenJobs("deployment_id", "site.deploy")}`,
        ),
      )
      .returning({ id: deployments.id }),
    backups: ctx.statement(sql`
      UPDATE backups SET status = 'FAILED', error = ${reason}, finished_at = ${now}
      WHERE ${gone} AND status = 'RUNNING' AND (id IN ${ofOpenJobs("backup_id", "database.backup")}
        OR id IN ${ofOpenJobs("backup_id", "volume.backup")})`),
    jobs: ctx.statement(sql`
      UPDATE jobs SET status = 'FAILED', error = ${reason}, finished_at = ${now}
      WHERE ${gone} AND host_id = ${id} AND ${openJob}`),
    leaving: ctx.statement(sql`
      UPDATE sites SET leaving_host_id = NULL, leave_at = NULL WHERE ${gone} AND leaving_host_id = ${id}`),
    // Their data is lost with the host; a start creates empty ones with the same address and password.
    databases: ctx.statement(sql`
      UPDATE databases SET host_id = NULL, lost_with = (SELECT token_hash FROM hosts WHERE id = ${id}), version = NULL, error = ${lostData}, updated_at = ${now},
        next_password_sealed = NULL, previous_password_sealed = NULL,
        public_enabled = 0, public_applied = public_generation, public_port = NULL, public_address = NULL,
        status = CASE WHEN status IN ('DELETING', 'SUSPENDED') THEN status ELSE 'FAILED' END
      WHERE ${gone} AND host_id = ${id}`),
    // On other hosts they start with empty volumes.
    siteVolumes: ctx.statement(sql`
      UPDATE site_volumes SET created_at = ${now} WHERE ${gone} AND site_id IN (SELECT id FROM sites WHERE host_id = ${id})`),
    moves: ctx.statement(sql`
      UPDATE sites SET move_host_id = NULL, status = ${statusAfterDeployment} WHERE ${gone} AND move_host_id = ${id}`),
    lost: ctx.db
      .update(sites)
      .set({
        hostId: null,
        serving: false,
        status: sql`CASE
          WHEN status IN ('DELETING', 'SUSPENDED', 'STOPPED') OR status = 'FAILED' AND NOT serving THEN status
          WHEN wanted = 'STOPPED' THEN 'STOPPED'
          ELSE 'DEPLOYING' END`,
      })
      .where(and(gone, eq(sites.hostId, id)))
      .returning({ id: sites.id, status: sites.status }),
    left: others(ctx),
  });
  if (removed.length === 0) return null;
  for (const deployment of ended) ctx.logs.finish(deployment.id, `Deployment failed: ${reason}`);
  // The reaper completes an interrupted removal.
  for (const site of lost)
    if (site.status === "DEPLOYING") await ctx.db.batch([...queueMove(ctx, sql`${site.id}`, { asIs: true })]);
  tellOrphans(ctx, await endOrphans(ctx));
  ctx.hosts.wake(null);
  return left;
}

import { getTableColumns, sql } from "drizzle-orm";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Ctx } from "../../ctx.ts";
import { deployments } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { silentHost, waitReasons, type WaitReason } from "../../domain/wait-reasons.ts";
import { hasPlace, hostIsClosed, waitsForRoom } from "../../jobs/hosts/placement.ts";
import { imageKept, mayComeBack } from "../../jobs/deployments/kept.ts";
import { waitsForDatabase } from "../../jobs/turns.ts";

const { build: _, ...columns } = getTableColumns(deployments);

/** For a QUEUED row; null for any other. */
const waitReason = (ctx: Ctx) => sql<WaitReason | null>`(SELECT CASE
    WHEN j.host_id IS NULL AND NOT ${hasPlace} THEN 'placement'
    WHEN EXISTS (SELECT 1 FROM hosts WHERE id = j.host_id AND offline_since IS NOT NULL) THEN 'host'
    WHEN ${waitsForRoom} THEN 'room'
    WHEN ${waitsForDatabase(sql`${ctx.now().getTime()}`)} THEN 'database'
    WHEN j.host_id IS NULL THEN 'placement'
    WHEN ${hostIsClosed} THEN 'closed'
    ELSE 'turn' END
  FROM jobs j WHERE deployments.status = 'QUEUED' AND j.deployment_id = deployments.id AND j.status = 'QUEUED')`;

/** For a row in progress: since when its host is unreachable. */
const silentSince = sql<number | null>`(SELECT h.offline_since FROM jobs j JOIN hosts h ON h.id = j.host_id
  WHERE deployments.status IN ('BUILDING', 'STARTING') AND j.deployment_id = deployments.id AND j.status = 'LEASED')`;

/** Also of a key that is revoked by now. */
const key = sql<string | null>`(SELECT json_object('name', name, 'start', start, 'origin', origin)
  FROM api_keys WHERE id = deployments.key_id)`;

/** Deployments with everything in their public representation. */
export const selectDeployments = (ctx: Ctx) =>
  ctx.db
    .select({
      ...columns,
      imageKept: imageKept.mapWith(Boolean).as("image_kept"),
      key: key.as("key"),
      waitReason: waitReason(ctx).as("wait_reason"),
      silentSince: silentSince.as("silent_since"),
      mayComeBack: mayComeBack.mapWith(Boolean).as("may_come_back"),
    })
    .from(deployments);
export type DeploymentRecord = Awaited<ReturnType<typeof selectDeployments>>[number];

export const deploymentView = (row: DeploymentRecord): Deployment => ({
  id: row.id,
  siteId: row.siteId,
  number: row.number,
  status: row.status,
  trigger: row.trigger,
  key: row.key === null ? null : (JSON.parse(row.key) as Deployment["key"]),
  ref: row.ref,
  commit: row.commit,
  commitMessage: row.commitMessage,
  imageDigest: row.imageDigest,
  imageKept: row.imageKept,
  canRollBack: row.mayComeBack,
  rollbackOf: row.rollbackOf,
  envVersion: row.envVersion,
  error: row.error,
  waitsFor: row.silentSince ? silentHost(row.silentSince) : row.waitReason && waitReasons[row.waitReason],
  createdAt: isoTime(row.createdAt),
  startedAt: isoTime(row.startedAt),
  finishedAt: isoTime(row.finishedAt),
  durations: { clone: row.cloneMs, build: row.buildMs, start: row.startMs, swap: row.swapMs },
});

import { getTableColumns } from "drizzle-orm";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { Db } from "../../context.ts";
import { deployments } from "../../db/schema.ts";
import { imageKept, mayComeBack } from "./kept.ts";

const { build: _, ...columns } = getTableColumns(deployments);

/** Deployments with all that their public record shows. */
export const selectDeployments = (db: Db) =>
  db
    .select({
      ...columns,
      imageKept: imageKept.mapWith(Boolean).as("image_kept"),
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
  commit: row.commit,
  commitMessage: row.commitMessage,
  imageDigest: row.imageDigest,
  imageKept: row.imageKept,
  canRollBack: row.mayComeBack,
  rollbackOf: row.rollbackOf,
  envVersion: row.envVersion,
  error: row.error,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  finishedAt: row.finishedAt?.toISOString() ?? null,
  durations: { clone: row.cloneMs, build: row.buildMs, start: row.startMs, swap: row.swapMs },
});

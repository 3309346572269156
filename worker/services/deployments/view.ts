import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { deployments } from "../../db/schema.ts";

export type DeploymentRow = typeof deployments.$inferSelect;

export const deploymentView = (row: DeploymentRow): Deployment => ({
  id: row.id,
  siteId: row.siteId,
  number: row.number,
  status: row.status,
  trigger: row.trigger,
  commit: row.commit,
  commitMessage: row.commitMessage,
  imageDigest: row.imageDigest,
  error: row.error,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  finishedAt: row.finishedAt?.toISOString() ?? null,
  durations: { clone: row.cloneMs, build: row.buildMs, start: row.startMs, swap: row.swapMs },
});

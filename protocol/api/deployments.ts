import * as z from "zod";
import { deploymentSteps } from "../deployment-steps.ts";
import { deploymentStatuses, deploymentTriggers } from "../states.ts";
import { listQuery, text, Timestamp, wholeNumber } from "./common.ts";
import { Key } from "./keys.ts";

const durationMs = z.number().int().nonnegative().nullable();

export const Deployment = z
  .object({
    id: z.string(),
    siteId: z.string(),
    number: z.number().int(),
    status: z
      .enum(deploymentStatuses)
      .describe(
        "LIVE: it succeeded and is the current version. SUPERSEDED: it succeeded, and a later one has taken its place. CANCELLED: it was cancelled, or replaced while it was queued.",
      ),
    trigger: z.enum(deploymentTriggers),
    key: Key.pick({ name: true, start: true, origin: true })
      .nullable()
      .describe("The API key that requested it; null: requested without one."),
    ref: z.string().nullable().describe("The requested branch, tag or commit; null: the site's branch."),
    commit: z.string().nullable(),
    commitMessage: z.string().nullable(),
    imageDigest: z.string().nullable(),
    imageKept: z.boolean().describe("The image is still on the site's host."),
    canRollBack: z
      .boolean()
      .describe(
        "The deployment can be rolled back to. If its image is gone, it is rebuilt from the same source.",
      ),
    rollbackOf: z.string().nullable().describe("The deployment that this rollback restored."),
    envVersion: z
      .number()
      .int()
      .describe("The version of the site's environment that it runs or last ran with."),
    error: z.string().nullable(),
    waitsFor: z
      .string()
      .nullable()
      .describe("Why the deployment has not started or made progress, such as an unreachable host."),
    createdAt: Timestamp,
    startedAt: Timestamp.nullable(),
    finishedAt: Timestamp.nullable(),
    durations: z
      .object({ clone: durationMs, build: durationMs, start: durationMs, swap: durationMs })
      .describe("Milliseconds."),
  })
  .meta({ id: "Deployment" });
export type Deployment = z.infer<typeof Deployment>;

export const DeploymentListQuery = listQuery("deployment").extend({
  status: z.enum(deploymentStatuses).optional().describe("Only deployments with this status."),
  trigger: z.enum(deploymentTriggers).optional().describe("Only deployments with this trigger."),
});
export type DeploymentListQuery = z.infer<typeof DeploymentListQuery>;

export const DeploymentComparisonQuery = z.strictObject({
  deploymentId: text.max(100).describe("Another deployment of the same site."),
});
export type DeploymentComparisonQuery = z.infer<typeof DeploymentComparisonQuery>;

export const DeploymentComparison = z
  .object({
    earlier: Deployment,
    later: Deployment,
    commit: z.boolean().describe("They were built from different commits."),
    environment: z
      .array(z.object({ key: z.string(), change: z.enum(["added", "changed", "removed"]) }))
      .describe("The site's own variables that differ; those of linked databases are not compared."),
    settings: z
      .array(z.object({ setting: z.string(), earlier: z.unknown(), later: z.unknown() }))
      .nullable()
      .describe("The settings that differ; null: one deployment's settings are no longer known."),
    unknownSettings: z
      .array(z.string())
      .describe(
        "Settings that cannot be compared, because they are kept only while a version can be rebuilt.",
      ),
  })
  .meta({ id: "DeploymentComparison" });
export type DeploymentComparison = z.infer<typeof DeploymentComparison>;

export const LogLine = z
  .object({
    seq: z
      .number()
      .int()
      .describe(
        "For a deployment or command: a number from 1, without gaps. For a running site or database: the time in microseconds.",
      ),
    at: Timestamp,
    stream: z.enum(["system", "stdout", "stderr"]).describe("`system`: written by Berth itself."),
    replica: z
      .number()
      .int()
      .optional()
      .describe("For a running site: the replica that wrote the line, from 1."),
    text: z.string(),
    step: z
      .enum(deploymentSteps)
      .optional()
      .describe("For a deployment: the step that the line belongs to, as in its `durations`."),
    leftOut: z
      .number()
      .int()
      .nullable()
      .optional()
      .describe(
        "In a followed log of a running site or database: this many lines are missing here, because they were written faster than you read them; null: unknown number. `at` is the time of the last one.",
      ),
  })
  .meta({ id: "LogLine" });
export type LogLine = z.infer<typeof LogLine>;

export const LogQuery = z.strictObject({
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe(
      "1: stream server-sent events, one `line` each, then `end` when the log is complete. The stream closes without `end` when your key or session ends.",
    ),
  limit: wholeNumber(1, 1000).default(1000),
  cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0).describe("Only lines after this `seq`."),
});
export type LogQuery = z.infer<typeof LogQuery>;

export const DeploymentCancelled = z.object({ id: z.string(), status: z.enum(deploymentStatuses) });
export type DeploymentCancelled = z.infer<typeof DeploymentCancelled>;

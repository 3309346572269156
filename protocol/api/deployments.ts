import * as z from "zod";
import { deploymentStatuses, deploymentTriggers } from "../states.ts";
import { Timestamp, wholeNumber } from "./common.ts";

const durationMs = z.number().int().nonnegative().nullable();

export const Deployment = z
  .object({
    id: z.string(),
    siteId: z.string(),
    number: z.number().int(),
    status: z.enum(deploymentStatuses),
    trigger: z.enum(deploymentTriggers),
    commit: z.string().nullable(),
    commitMessage: z.string().nullable(),
    imageDigest: z.string().nullable(),
    imageKept: z.boolean().describe("The site's host still has its image."),
    canRollBack: z
      .boolean()
      .describe(
        "A rollback may name it. Where its image is not kept, it is built again from the same source.",
      ),
    rollbackOf: z.string().nullable().describe("The deployment that this one brought back."),
    envVersion: z.number().int().describe("Version of the site's environment that it runs or last ran with."),
    error: z.string().nullable(),
    waitsFor: z.string().nullable().describe("Why it has not begun, or does not go on: its host is silent."),
    createdAt: Timestamp,
    startedAt: Timestamp.nullable(),
    finishedAt: Timestamp.nullable(),
    durations: z
      .object({ clone: durationMs, build: durationMs, start: durationMs, swap: durationMs })
      .describe("Milliseconds."),
  })
  .meta({ id: "Deployment" });
export type Deployment = z.infer<typeof Deployment>;

export const LogLine = z
  .object({
    seq: z
      .number()
      .int()
      .describe(
        "Of a deployment or a command: from 1, without gaps. Of a running site or database: its time in microseconds.",
      ),
    at: Timestamp,
    stream: z.enum(["system", "stdout", "stderr"]).describe("`system`: said by Berth itself."),
    replica: z
      .number()
      .int()
      .optional()
      .describe("Of a running site: which of its containers wrote it, from 1."),
    text: z.string(),
  })
  .meta({ id: "LogLine" });
export type LogLine = z.infer<typeof LogLine>;

export const LogQuery = z.strictObject({
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe(
      "1: server-sent events, one `line` each, then `end` when no more will come. Cut off without it where your key or session ends.",
    ),
  limit: wholeNumber(1, 1000).default(1000),
  cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0).describe("Only lines after this `seq`."),
});
export type LogQuery = z.infer<typeof LogQuery>;

export const DeploymentCancelled = z.object({ id: z.string(), status: z.enum(deploymentStatuses) });
export type DeploymentCancelled = z.infer<typeof DeploymentCancelled>;

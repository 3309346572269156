import * as z from "zod";
import { deploymentStatuses, deploymentTriggers } from "../states.ts";
import { Timestamp } from "./common.ts";

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
    /** The host still has its image: a rollback may name it. */
    imageKept: z.boolean(),
    /** The deployment that this one brought back. */
    rollbackOf: z.string().nullable(),
    /** Version of the site's environment that it runs or last ran with. */
    envVersion: z.number().int(),
    error: z.string().nullable(),
    createdAt: Timestamp,
    startedAt: Timestamp.nullable(),
    finishedAt: Timestamp.nullable(),
    /** Milliseconds. */
    durations: z.object({ clone: durationMs, build: durationMs, start: durationMs, swap: durationMs }),
  })
  .meta({ id: "Deployment" });
export type Deployment = z.infer<typeof Deployment>;

/** `seq` counts from 1 without gaps over all attempts of one deployment. */
export const LogLine = z
  .object({
    seq: z.number().int(),
    at: Timestamp,
    stream: z.enum(["system", "stdout", "stderr"]),
    /** Of a running site: which of its containers wrote it, from 1. */
    replica: z.number().int().optional(),
    text: z.string(),
  })
  .meta({ id: "LogLine" });
export type LogLine = z.infer<typeof LogLine>;

/** `follow=1` answers server-sent events, one line each, that resume after `Last-Event-ID`. */
export const LogQuery = z.strictObject({
  follow: z.enum(["0", "1"]).default("0"),
  limit: z.coerce.number().int().min(1).max(1000).default(1000),
  cursor: z.coerce.number().int().min(0).default(0),
});

export const DeploymentCancelled = z.object({ id: z.string(), status: z.enum(deploymentStatuses) });
export type DeploymentCancelled = z.infer<typeof DeploymentCancelled>;

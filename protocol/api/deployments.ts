import * as z from "zod";
import { deploymentStatuses, deploymentTriggers } from "../states.ts";
import { Timestamp } from "./common.ts";

const durationMs = z.number().int().nonnegative().nullable();

export const Deployment = z.object({
  id: z.string(),
  siteId: z.string(),
  number: z.number().int(),
  status: z.enum(deploymentStatuses),
  trigger: z.enum(deploymentTriggers),
  commit: z.string().nullable(),
  commitMessage: z.string().nullable(),
  imageDigest: z.string().nullable(),
  error: z.string().nullable(),
  createdAt: Timestamp,
  startedAt: Timestamp.nullable(),
  finishedAt: Timestamp.nullable(),
  /** Milliseconds. */
  durations: z.object({ clone: durationMs, build: durationMs, start: durationMs, swap: durationMs }),
});
export type Deployment = z.infer<typeof Deployment>;

/** `seq` counts from 1 without gaps over all attempts of one deployment. */
export const LogLine = z.object({
  seq: z.number().int(),
  at: Timestamp,
  stream: z.enum(["system", "stdout", "stderr"]),
  text: z.string(),
});
export type LogLine = z.infer<typeof LogLine>;

import type { Job } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";

/** One attempt at a job: only the current one may report. */
export type Lease = { jobId: Id<"job">; attempt: number };

/** The log that a job writes. */
export type LogId = Id<"deployment" | "command">;

/** A leased job as its host is sent it. */
export type Offer = { job: Job; attempt: number; timeoutMs: number; lane: string; logId: LogId | null };

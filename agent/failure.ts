import { inspect } from "node:util";
import { diskIsFull, saysDiskBroken, saysDiskFull } from "./docker/disk-full.ts";
import { JobError } from "./job.ts";
import type { Lease, Report } from "./journal.ts";
import { log } from "./log.ts";
import { durationsOf, type PhaseStart } from "./phase-times.ts";
import { plain } from "../protocol/redact.ts";

/** Why a job was stopped. */
export class Stopped extends Error {
  readonly kind: "cancelled" | "dropped" | "deadline" | "shutdown";
  constructor(kind: Stopped["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The agent is stopping: the next one resumes the job. */
export const isShutdown = ({ reason }: { reason?: unknown }): boolean =>
  reason instanceof Stopped && reason.kind === "shutdown";

/** The error shown to the site's owner; the full cause is logged by the agent. */
export function failureReport(
  run: Lease & { abort: AbortController; began: readonly PhaseStart[] },
  error: unknown,
  redact: (text: string) => string,
): Report {
  const { jobId, attempt, began } = run;
  const { aborted, reason } = run.abort.signal;
  const stopped = aborted && reason instanceof Stopped ? reason : undefined;
  const sentence = stopped ? stopped.message : error instanceof JobError ? error.message : undefined;
  if (sentence === undefined || (error instanceof JobError && error.cause !== undefined))
    log(sentence === undefined ? "error" : "warn", "A job failed", { jobId, error: redact(inspect(error)) });
  const unexpected = unexpectedSentence(jobId, String(error));
  const oneLine = redact(plain(sentence ?? unexpected)).replace(/\s+/g, " ");
  return {
    type: "failed",
    jobId,
    attempt,
    error: oneLine.trim().slice(0, 2000) || unexpected,
    cancelled: stopped?.kind === "cancelled",
    durations: began.length > 0 ? durationsOf(began) : null,
  };
}

function unexpectedSentence(jobId: string, text: string): string {
  if (saysDiskFull([text])) return diskIsFull("try again");
  if (saysDiskBroken(text))
    return `The host's disk is failing: ask the operator to fix it, naming ${jobId}, then try again.`;
  return `Something went wrong on the host: try again, or ask the operator about ${jobId}.`;
}

import type { DeploymentStep } from "../protocol/deployment-steps.ts";

/** One run of a job: how it is stopped and how it reports. */
export type JobRun = {
  jobId: string;
  attempt: number;
  /** Aborted by cancel, drop, deadline or shutdown. Checked before every step with an effect. */
  signal: AbortSignal;
  /** One line of the deployment's log; known secret values are masked before it leaves the process. */
  log: (text: string, stream?: "system" | "stdout" | "stderr") => void;
  /** One line of a command's output, with its time in nanoseconds; false: the log is full and accepts no more. */
  print(line: { at: string; stream: "stdout" | "stderr"; text: string }): boolean;
  /** The last output, if the log was full before. */
  printLast(lines: readonly { at: string; stream: "stdout" | "stderr"; text: string }[]): void;
  /** Where to resume the log that a previous agent wrote for this run; null: at its beginning. */
  printedUntil: string | null;
  /** Runs once the result is in the journal; lost if the agent ends first. */
  afterwards(work: () => Promise<void>): void;
  /** An owner's command may have run, which is not to run twice. */
  hasRunCommand?: boolean;
  phase(phase: DeploymentStep, source?: { commit: string; commitMessage: string }): void;
};

/** A failure with a message for the site's owner: one plain sentence that states what to do. */
export class JobError extends Error {
  override name = "JobError";
}

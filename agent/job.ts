import type { Phase } from "../protocol/agent/messages.ts";

/** What one run of a job may use to be stopped and to say how it goes. */
export type JobRun = {
  jobId: string;
  attempt: number;
  /** Aborted by cancel, drop, deadline or shutdown. Checked before every step with an effect. */
  signal: AbortSignal;
  /** One line of the deployment's log; known secret values are masked before it leaves the process. */
  log: (text: string, stream?: "system" | "stdout" | "stderr") => void;
  /** One line that a command wrote, with its time in nanoseconds; false: the log is full, and nothing more is taken. */
  print(line: { at: string; stream: "stdout" | "stderr"; text: string }): boolean;
  /** What it wrote last, where the log was full before. */
  printLast(lines: readonly { at: string; stream: "stdout" | "stderr"; text: string }[]): void;
  /** Where the log of this run, by an agent before this one, is to go on; null: at its beginning. */
  printedUntil: string | null;
  /** Done once the result is in the journal, and lost with the agent. */
  afterwards(work: () => Promise<void>): void;
  phase(phase: Phase, source?: { commit: string; commitMessage: string }): void;
};

/** A failure whose message is for the site's owner: one plain sentence that says what to do. */
export class JobError extends Error {
  override name = "JobError";
}

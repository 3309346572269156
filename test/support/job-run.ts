import type { JobRun } from "../../agent/job.ts";

/** A run that is never stopped and logs nothing, except as given. */
export const jobRun = (given: Partial<JobRun> = {}): JobRun => ({
  jobId: "job_test",
  attempt: 1,
  signal: new AbortController().signal,
  log: () => undefined,
  phase: () => undefined,
  print: () => true,
  printLast: () => undefined,
  printedUntil: null,
  afterwards: () => undefined,
  ...given,
});

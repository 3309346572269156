import { JobError } from "../../job.ts";

/**
 * Time limits in milliseconds without progress. A host runs one backup or verification at a time, so a single
 * unreadable file would hold up all others. Reads can be repeated, a lost dump cannot.
 */
export type Patience = { reading: number; writing: number };
export const defaultPatienceMs: Patience = { reading: 2 * 60_000, writing: 10 * 60_000 };

/** A signal that aborts with the given one, or once its clock has run for this long; `begin` restarts the clock. */
export function clocked(signal: AbortSignal, ms: number, what: string) {
  const over = new AbortController();
  const end = () =>
    over.abort(
      new JobError(`The store ${what} for ${ms / 60_000} minutes: try again, or ask the operator about it.`),
    );
  let timer: NodeJS.Timeout | undefined;
  const stop = () => clearTimeout(timer);
  const begin = () => {
    stop();
    timer = setTimeout(end, ms);
  };
  begin();
  return { signal: AbortSignal.any([signal, over.signal]), begin, stop };
}

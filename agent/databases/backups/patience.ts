import { JobError } from "../../job.ts";

/**
 * For so long nothing may come or go. A host makes one backup or verification at a time, so a single file that cannot be
 * read would hold up all others; what is read can be read again, a dump that is lost cannot.
 */
export type Patience = { reading: number; writing: number };
export const defaultPatienceMs: Patience = { reading: 2 * 60_000, writing: 10 * 60_000 };

/** A signal that ends with the one given, or once its clock has run for so long; `begin` sets the clock anew. */
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

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Lease } from "./journal.ts";
import { log } from "./log.ts";

/**
 * The result of a job's work. @throws the signal's reason if the work continues for longer than this after the abort
 */
export async function withGracePeriod<T>(
  { jobId, attempt }: Lease,
  work: Promise<T>,
  signal: AbortSignal,
  graceMs: number,
): Promise<T> {
  const over = new AbortController();
  const tooLong = async (): Promise<never> => {
    if (!signal.aborted) await once(signal, "abort", { signal: over.signal });
    await delay(graceMs, undefined, { signal: over.signal });
    log("error", "A job did not end within its grace period and was given up", {
      jobId,
      attempt,
      reason: signal.reason,
    });
    throw signal.reason;
  };
  try {
    return await Promise.race([work, tooLong()]);
  } finally {
    over.abort();
  }
}

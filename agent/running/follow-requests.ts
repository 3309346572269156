import { setTimeout as delay } from "node:timers/promises";
import type { RequestFilters, SiteRequest } from "../../protocol/api/requests.ts";
import type { RequestRecords } from "./request-records.ts";

/** Per message, and the pause after one, so that a flood neither fills the link nor what reads from it. */
const batchRequests = 200;
const pauseMs = 250;

/**
 * Delivers the site's requests after one of them as they are kept, until the signal aborts.
 * @param after null: from now on. Requests that are no longer kept by then are left out
 */
export async function followRequests(
  requests: Pick<RequestRecords, "after" | "newest" | "onTaken">,
  { siteId, filters, after }: { siteId: string; filters: RequestFilters; after: number | null },
  signal: AbortSignal,
  deliver: (requests: SiteRequest[]) => void,
): Promise<void> {
  let wake: (() => void) | undefined;
  let isNew = true;
  requests.onTaken(
    siteId,
    () => {
      isNew = true;
      wake?.();
    },
    signal,
  );
  signal.addEventListener("abort", () => wake?.(), { once: true });
  // The records were lost and begin anew: none of theirs was delivered.
  const newest = requests.newest();
  let last = after === null || after > newest ? newest : after;
  while (!signal.aborted) {
    if (!isNew) await new Promise<void>((resolve) => (wake = resolve));
    if (signal.aborted) return;
    isNew = false;
    const found = requests.after(siteId, filters, last, batchRequests);
    if (found.length === 0) continue;
    last = Number(found.at(-1)?.id);
    deliver(found);
    if (found.length === batchRequests) isNew = true;
    await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

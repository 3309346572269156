import { setTimeout as delay } from "node:timers/promises";
import { countServed, socketTables } from "../docker/listening.ts";
import type { Engine } from "../docker/engine.ts";
import { drainSecondsOf, siteLabels, stopGraceOf, stopGraceSeconds } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Records } from "../running/records.ts";
import { label, type Labels } from "../docker/labels.ts";

/** After the longest drain, a container is tried to be removed for so long, so often. */
const removeMs = 10 * 60_000;
const againMs = 1000;

/** A container that is about to be removed: what calls it back, and whether it was removed after all. */
type Leaving = { back: AbortController; removed: Promise<boolean> };

/** Seconds an old container still runs after the swap: at least `drainSeconds`, and up to `drainMaxSeconds` while it serves somebody. */
type Patience = { drainSeconds: number; drainMaxSeconds: number };

/**
 * Removes a site's containers but those in service, after what they began has had time to end: requests, downloads, event streams,
 * WebSockets. Not part of the job: if the agent dies meanwhile, the next one goes on until the same moment.
 */
export function openRetirement(options: {
  engine: Engine;
  agentId: string;
  patience: Patience;
  drains: Pick<Records, "drainUntil" | "drainsUntil" | "drained">;
  /** Its log goes with it. */
  keepLastLines: (containerId: string) => Promise<void>;
  onError: (error: unknown) => void;
}): Pick<Host, "retire" | "isRetiring" | "recall" | "goOnRetiring" | "retired" | "discard"> {
  const { engine, agentId, patience, drains, keepLastLines, onError } = options;
  const drainMs = patience.drainSeconds * 1000;
  const drainMaxMs = Math.max(patience.drainSeconds, patience.drainMaxSeconds) * 1000;
  /** How long a container may drain: as its site's lifecycle says, or as the host does. */
  const longestOf = (labels: Labels): number => {
    const seconds = drainSecondsOf(labels);
    return seconds === null ? drainMaxMs : Math.max(drainMs, seconds * 1000);
  };
  const underWay = new Set<Promise<void>>();
  const leaving = new Map<string, Leaving>();

  function begin(work: () => Promise<unknown>): void {
    const one: Promise<void> = work()
      .then(() => undefined, onError)
      .finally(() => underWay.delete(one));
    underWay.add(one);
  }

  /** What the next agent would go by: on a full disk it cannot be written, and the work goes on. */
  function note(write: () => void): void {
    try {
      write();
    } catch (error) {
      onError(error);
    }
  }

  async function allEnded(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  async function drain(id: string, leftMs: number, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    await delay(Math.min(drainMs, leftMs), undefined, { signal });
    for (;;) {
      const state = await engine.inspectContainer(id);
      // The ingress keeps no idle connection longer than the shortest drain.
      const isBusy = state?.running === true && countServed(...(await socketTables(state.pid))) > 0;
      if (!isBusy || performance.now() - began > leftMs) return;
      await delay(500, undefined, { signal });
    }
  }

  async function discard({ id, labels }: { id: string; labels: Labels }): Promise<void> {
    await engine.stopContainer(id, stopGraceOf(labels));
    await keepLastLines(id).catch(onError);
    await engine.removeContainer(id);
  }

  /** @returns false: it was called back before. */
  async function remove(id: string, until: Date, signal: AbortSignal): Promise<boolean> {
    const began = performance.now();
    let longestMs = drainMaxMs;
    for (;;)
      try {
        const { labels = {} } = (await engine.inspectContainer(id)) ?? {};
        longestMs = longestOf(labels);
        // The clock may have been set meanwhile.
        await drain(id, Math.min(longestMs, Math.max(0, until.getTime() - Date.now())), signal);
        if (signal.aborted) return false;
        await discard({ id, labels });
        note(() => drains.drained(id));
        return true;
      } catch (error) {
        if (signal.aborted) return false;
        // The engine may be away for a while; what is not removed then runs on beside what serves.
        if (performance.now() - began > longestMs + removeMs) throw error;
        await delay(againMs);
      }
  }

  function leave(id: string, until: Date): Promise<boolean> {
    const known = leaving.get(id);
    if (known && !known.back.signal.aborted) return known.removed;
    const back = new AbortController();
    const removed = remove(id, until, back.signal).finally(() => {
      if (leaving.get(id)?.back === back) leaving.delete(id);
    });
    leaving.set(id, { back, removed });
    return removed;
  }

  return {
    retire(siteId, keepContainerIds) {
      const nowMs = Date.now();
      const untilOf = (labels: Labels) => new Date(nowMs + longestOf(labels));
      begin(async () => {
        const all = await engine.listContainers({ ...siteLabels(siteId), [label.agent]: agentId });
        const old = all.filter(({ id }) => !keepContainerIds.includes(id));
        for (const { id, labels } of old) note(() => drains.drainUntil(id, untilOf(labels)));
        await Promise.all(old.map(({ id, labels }) => leave(id, untilOf(labels))));
      });
    },
    isRetiring: (containerId) => leaving.has(containerId),
    async recall(containerId) {
      const one = leaving.get(containerId);
      one?.back.abort();
      // Its failure is told where it was begun.
      const isGone = (await one?.removed.catch(() => true)) ?? false;
      note(() => drains.drained(containerId));
      return !isGone;
    },
    goOnRetiring(containerId) {
      const until = drains.drainsUntil(containerId);
      if (until === null) return null;
      if (until.getTime() <= Date.now()) return "over";
      begin(() => leave(containerId, until));
      return "under way";
    },
    async retired() {
      const over = new AbortController();
      const longest = delay(drainMaxMs + 2 * stopGraceSeconds * 1000, undefined, { signal: over.signal });
      await Promise.race([allEnded(), longest]);
      over.abort();
    },
    discard,
  };
}

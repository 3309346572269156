import { setTimeout as delay } from "node:timers/promises";
import { countServed, socketTables } from "../docker/listening.ts";
import type { Engine } from "../docker/engine.ts";
import { siteLabels } from "../docker/specs.ts";
import { stopGraceSeconds } from "./release.ts";

/** Seconds an old container still runs after the swap: at least `drain`, and up to `drainMax` while it serves somebody. */
export type Patience = { drainSeconds: number; drainMaxSeconds: number };

/**
 * Removes a site's containers but those in service, after what they began has had time to end: requests, downloads, event streams,
 * WebSockets. Not part of the job: if the agent dies meanwhile, the sweep at its next start removes them.
 */
export function retireAfter(
  engine: Engine,
  agentId: string,
  { drainSeconds, drainMaxSeconds }: Patience,
  onError: (error: unknown) => void,
) {
  async function drain(id: string, swapped: number): Promise<void> {
    await delay(drainSeconds * 1000);
    for (;;) {
      const state = await engine.inspectContainer(id);
      // The ingress keeps no idle connection longer than the shortest drain.
      const isBusy = state?.running === true && countServed(...(await socketTables(state.pid))) > 0;
      if (!isBusy || performance.now() - swapped > drainMaxSeconds * 1000) return;
      await delay(500);
    }
  }
  return (siteId: string, keepContainerIds: readonly string[]): void => {
    const swapped = performance.now();
    const old = engine
      .listContainers({ ...siteLabels(siteId), "berth.agent": agentId })
      .then((all) => all.filter(({ id }) => !keepContainerIds.includes(id)));
    const remove = async (id: string) => {
      await drain(id, swapped);
      await engine.stopContainer(id, stopGraceSeconds);
      await engine.removeContainer(id);
    };
    old.then((retired) => Promise.all(retired.map(({ id }) => remove(id)))).catch(onError);
  };
}

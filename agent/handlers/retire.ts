import { setTimeout as delay } from "node:timers/promises";
import type { Engine } from "../docker/engine.ts";
import { siteLabels } from "../docker/specs.ts";
import { stopGraceSeconds } from "./release.ts";

/**
 * Removes a site's containers but one, after what they began has had time to end. Not part of the job: if the agent dies
 * meanwhile, the sweep at its next start removes them.
 */
export function retireAfter(
  engine: Engine,
  agentId: string,
  drainSeconds: number,
  onError: (error: unknown) => void,
) {
  return (siteId: string, keepContainerId: string): void => {
    const old = engine
      .listContainers({ ...siteLabels(siteId), "berth.agent": agentId })
      .then((all) => all.filter(({ id }) => id !== keepContainerId));
    const remove = async () => {
      const retired = await old;
      if (retired.length === 0) return;
      await delay(drainSeconds * 1000);
      for (const { id } of retired) {
        await engine.stopContainer(id, stopGraceSeconds);
        await engine.removeContainer(id);
      }
    };
    remove().catch(onError);
  };
}

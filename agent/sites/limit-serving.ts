import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { label } from "../docker/labels.ts";
import { limitsOf, shareOf, stopGraceOf } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingIds } from "../ingress/ingress.ts";
import { handOver } from "./hand-over.ts";
import { readdress } from "./readdress.ts";
import { containersOf } from "./rollout.ts";

/**
 * The containers in service get the pack's limits as they are, because no new ones with these came up.
 * @returns whether they were created with more memory
 */
export async function limitServing(host: Host, { siteId, limits }: RunSpec): Promise<boolean> {
  const { engine, ingress } = host;
  const ids = servingIds(ingress, siteId);
  const serving = (await containersOf(host, siteId)).filter(({ id }) => ids.includes(id));
  const share = shareOf(limits, serving.length);
  let isLess = false;
  for (const { id, labels } of serving) {
    const hadMore = Number(labels[label.memory]) > share.memoryMb;
    isLess ||= hadMore;
    await engine.limitContainer(id, limitsOf(share)).catch(async (error: unknown) => {
      if (!hadMore) throw error;
      // Control groups of version 1 take no memory away that is in use.
      await handOver(siteId, async () => {
        await engine.stopContainer(id, stopGraceOf(labels));
        try {
          await engine.limitContainer(id, limitsOf(share));
        } finally {
          await engine.startContainer(id);
          await readdress(host, siteId, id);
        }
      });
    });
  }
  return isLess;
}

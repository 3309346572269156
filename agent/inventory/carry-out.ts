import type { Verdicts } from "../../protocol/agent/inventory.ts";
import { isId } from "../../protocol/ids.ts";
import { stopGraceSeconds as databaseGraceSeconds } from "../docker/database-objects.ts";
import { labelsOf, stopGraceSeconds } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingIds } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { putAside } from "../docker/aside.ts";
import { label } from "../docker/labels.ts";

/**
 * Removes nothing but containers that run beside those in service. Skips whatever a job works on, even if it began
 * after the inventory: the next inventory covers it.
 */
export async function carryOut(
  host: Host,
  { setAside, retire }: Omit<Verdicts, "type">,
  isWorkingOn: (id: string) => boolean,
): Promise<void> {
  const alone = (id: string, work: () => Promise<void>) =>
    isWorkingOn(id)
      ? undefined
      : work().catch((error) => log("error", "A verdict was not carried out", { id, error }));
  for (const id of setAside) await alone(id, () => setAsideOne(host, id));
  for (const { siteId, containerIds } of retire)
    await alone(siteId, () => removeBeside(host, siteId, containerIds));
}

async function setAsideOne(host: Host, id: string): Promise<void> {
  const isSite = isId("site", id);
  if (isSite) await host.ingress.unroute(id);
  else if (host.publicAccess.set(id, null)) await host.isolation.refresh();
  const containers = await host.engine.listContainers({ ...labelsOf(id), [label.agent]: host.agentId });
  const now = new Date();
  for (const container of containers)
    await putAside(host.engine, container, isSite ? stopGraceSeconds : databaseGraceSeconds, now);
  if (containers.length > 0)
    log("warn", "No record knows this resource: it is stopped and set aside", { id });
}

async function removeBeside(host: Host, siteId: string, containerIds: string[]) {
  const { ingress } = host;
  const own = await host.engine.listContainers({ ...labelsOf(siteId), [label.agent]: host.agentId });
  const serving = servingIds(ingress, siteId);
  // Nothing is left to fall back to, and the record says that what serves is right.
  if (ingress.fallback(siteId)?.some(({ containerId }) => containerIds.includes(containerId)))
    await ingress.settle(siteId);
  if (serving.length === 0) return;
  for (const container of own) {
    const { id } = container;
    if (containerIds.includes(id) && !serving.includes(id) && !host.isRetiring(id))
      await host.discard(container);
  }
}

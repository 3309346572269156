import { networkName } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { label } from "../docker/labels.ts";

/** What the ingress knows of a container in service is so: whether it runs, and at which address. */
export async function readdress(host: Host, siteId: string, containerId: string): Promise<void> {
  const found = await host.engine.inspectContainer(containerId);
  const { [label.account]: accountId = "", [label.deployment]: deploymentId } = found?.labels ?? {};
  const routed = servingOf(host.ingress, siteId).find((target) => target.containerId === containerId);
  if (!routed) return;
  const now: Target = {
    ...routed,
    address: found?.addresses[networkName(accountId)] || routed.address,
    down: found?.running ? undefined : true,
    deploymentId: deploymentId || routed.deploymentId,
  };
  if (now.address !== routed.address || now.down !== routed.down || now.deploymentId !== routed.deploymentId)
    await host.ingress.readdress(siteId, now);
}

/** The same for a container that starts or ends, in the order in which it does; what the engine hangs on holds up no other. */
export function openReaddressing(host: Host): (siteId: string, containerId: string) => void {
  const underWay = new Map<string, Promise<void>>();
  return (siteId, containerId) => {
    const work = (underWay.get(containerId) ?? Promise.resolve())
      .then(() => readdress(host, siteId, containerId))
      .catch((error) => log("error", "A container that started or ended was not routed anew", { error }))
      .finally(() => {
        if (underWay.get(containerId) === work) underWay.delete(containerId);
      });
    underWay.set(containerId, work);
  };
}

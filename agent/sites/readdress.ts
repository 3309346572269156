import { setTimeout as delay } from "node:timers/promises";
import type { ContainerState } from "../docker/engine.ts";
import { networkName } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { holderOf } from "../ingress/holder.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { label } from "../docker/labels.ts";

/** Beyond that, the engine may hang on a container. */
const slowMs = 2000;

/** A container as the ingress reaches it now. @param known what was known before @param found null: it is gone */
export function targetNow(known: Target, found: ContainerState | null): Target {
  const { [label.account]: accountId = "", [label.deployment]: deploymentId } = found?.labels ?? {};
  return {
    ...known,
    address: found?.addresses[networkName(accountId)] || known.address,
    down: found?.running ? undefined : true,
    deploymentId: deploymentId || known.deploymentId,
    holder: (found?.running ? holderOf(found.pid) : undefined) ?? known.holder,
  };
}

/** In service, or served before a probation that is not over. */
const knownOf = ({ ingress }: Host, siteId: string): Target[] => [
  ...servingOf(ingress, siteId),
  ...(ingress.fallback(siteId) ?? []),
];

/** What the ingress knows of a container is so: whether it runs, and at which address. */
export async function readdress(host: Host, siteId: string, containerId: string): Promise<void> {
  const now = await changed(host, siteId, containerId);
  if (now) await host.ingress.readdress([now]);
}

/**
 * The same for all of them at once, as after a reboot any may have another address. Those that the engine is slow about are left to
 * who looks at each.
 */
export async function readdressAll(host: Host): Promise<void> {
  const found: { routed: string; now: Target }[] = [];
  const looks = host.ingress.sites().flatMap((siteId) =>
    knownOf(host, siteId).map(async (routed) => {
      const now = await changed(host, siteId, routed.containerId);
      if (now) found.push({ routed: JSON.stringify(routed), now });
    }),
  );
  const slow = delay(slowMs, undefined, { ref: false });
  await Promise.race([Promise.allSettled(looks), slow]);
  const known = new Set(
    host.ingress.sites().flatMap((siteId) => knownOf(host, siteId).map((one) => JSON.stringify(one))),
  );
  // One that has started anew meanwhile has been told by itself.
  const now = found.filter(({ routed }) => known.has(routed)).map((one) => one.now);
  if (now.length === 0) return;
  // The responder finds it written also where it does not answer now.
  await host.ingress
    .readdress(now)
    .catch((error: unknown) => log("error", "The ingress may not know yet where sites are", { error }));
}

/** Undefined: as the ingress knows it. */
async function changed(host: Host, siteId: string, containerId: string): Promise<Target | undefined> {
  const found = await host.engine.inspectContainer(containerId);
  const routed = knownOf(host, siteId).find((target) => target.containerId === containerId);
  if (!routed) return undefined;
  const now = targetNow(routed, found);
  const isSame = (["address", "down", "deploymentId", "holder"] as const).every(
    (key) => now[key] === routed[key],
  );
  return isSame ? undefined : now;
}

/**
 * The same for a container that starts or ends, in the order in which it does; what the engine hangs on holds up no other. What fails, as
 * on a disk that takes no writes, is tried again until it succeeds or the container starts or ends once more.
 */
export function openReaddressing(
  host: Host,
  signal: AbortSignal,
  retryMs = 5000,
): (siteId: string, containerId: string) => void {
  const underWay = new Map<string, Promise<void>>();
  return (siteId, containerId) => {
    const before = underWay.get(containerId);
    const untilDone = async (): Promise<void> => {
      await before;
      for (let isFirst = true; isFirst || underWay.get(containerId) === work; isFirst = false)
        try {
          return await readdress(host, siteId, containerId);
        } catch (error) {
          if (isFirst) log("error", "A container that started or ended was not routed anew", { error });
          if (!(await delay(retryMs, true, { signal, ref: false }).catch(() => false))) return;
        }
    };
    const work = untilDone().finally(() => {
      if (underWay.get(containerId) === work) underWay.delete(containerId);
    });
    underWay.set(containerId, work);
  };
}

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { endStrays } from "../backups/strays.ts";
import { networkName } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { log } from "../log.ts";

/**
 * What a crash, a reboot or an engine restart left: work directories and unrouted containers go, routed containers run
 * again and are reached at the address they have now, and so do databases. Runs before the agent takes work.
 */
export async function sweep(host: Host): Promise<void> {
  for (const name of await readdir(host.workDirectory))
    await rm(join(host.workDirectory, name), { recursive: true, force: true });
  for (const siteId of host.ingress.sites()) await reviveSite(host, siteId);
  for (const { id, labels, running } of await host.engine.listContainers({ "berth.agent": host.agentId })) {
    // What made or proved a backup ended with the agent that watched over it.
    if (labels["berth.copy"] !== undefined) {
      await host.engine.removeContainer(id);
      continue;
    }
    if (labels["berth.database"] !== undefined && running)
      await endStrays(host.engine, id).catch((error) =>
        log("warn", "A backup's remains stay", { id, error }),
      );
    // A stopped database has no container.
    if (labels["berth.database"] !== undefined && !running)
      await host.engine
        .startContainer(id)
        .catch((error) => log("error", "A database was not started", { id, error }));
    const siteId = labels["berth.site"];
    if (siteId === undefined) continue;
    const routed = host.ingress.current(siteId);
    // A stopped site keeps its container for the next start.
    if (routed !== "parked" && routed?.containerId !== id) await host.engine.removeContainer(id);
  }
}

/** The container that serves a site runs, and the ingress knows its address. */
export async function reviveSite(host: Host, siteId: string): Promise<void> {
  const routed = host.ingress.current(siteId);
  if (routed === null || routed === "parked") return;
  const found = await host.engine.inspectContainer(routed.containerId);
  const accountId = found?.labels["berth.account"];
  if (!found || accountId === undefined) return;
  if (!found.running) await host.engine.startContainer(found.id);
  const address = (await host.engine.inspectContainer(found.id))?.addresses[networkName(accountId)];
  if (address && address !== routed.address) await host.ingress.readdress(siteId, { ...routed, address });
}

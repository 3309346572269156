import { rm } from "node:fs/promises";
import type { ContainerSummary } from "../docker/engine.ts";
import { removeSiteImages } from "../docker/site-images.ts";
import { commandLabels, siteLabels } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { containersOf } from "../sites/rollout.ts";
import { label } from "../docker/labels.ts";

/**
 * Removes the route, all containers including those of commands, images, volumes, and the account's network if
 * unused.
 */
export const deleteSite: Handler<"site.delete"> = (host, args) => removeSite(host, args, () => true);

/**
 * Like a deletion, but a running command keeps running with everything it needs: the eviction is repeated once it has
 * ended.
 */
export const evictSite: Handler<"site.evict"> = (host, args) =>
  removeSite(host, args, ({ running }) => !running);

async function removeSite(
  host: Host,
  { siteId, accountId }: JobArgs<"site.evict">,
  isToGo: (command: ContainerSummary) => boolean,
): Promise<Record<string, never>> {
  // On a full disk the routing table cannot be written before the following steps have freed space.
  const isUnrouted = await host.ingress.unroute(siteId).then(
    () => true,
    () => false,
  );
  for (const { id } of await containersOf(host, siteId)) await host.engine.removeContainer(id);
  const commands = { ...commandLabels(siteId), [label.agent]: host.agentId };
  for (const command of await host.engine.listContainers(commands))
    if (isToGo(command)) await host.engine.removeContainer(command.id);
  for (const { name } of await host.engine.volumes(siteLabels(siteId))) await host.engine.removeVolume(name);
  await removeSiteImages(host.engine, { siteId, repository: host.imageRepository(siteId) });
  await leaveAccountNetwork(host, accountId);
  if (host.fileTimes) await rm(host.fileTimes(siteId), { force: true });
  if (!isUnrouted) await host.ingress.unroute(siteId);
  return {};
}

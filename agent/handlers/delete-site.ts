import type { ContainerSummary } from "../docker/engine.ts";
import { commandLabels, siteLabels } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { containersOf } from "../sites/rollout.ts";
import { label } from "../docker/labels.ts";

/** Route, containers, those of its commands too, images, volumes, and the account's network when nothing uses it. */
export const deleteSite: Handler<"site.delete"> = (host, args) => removeSite(host, args, () => true);

/** As a deletion, but a command that runs goes on, with what it needs: once it has ended, this is asked for again. */
export const evictSite: Handler<"site.evict"> = (host, args) =>
  removeSite(host, args, ({ running }) => !running);

async function removeSite(
  host: Host,
  { siteId, accountId }: JobArgs<"site.evict">,
  isToGo: (command: ContainerSummary) => boolean,
): Promise<Record<string, never>> {
  // On a full disk this cannot be written down before what follows has made room.
  const isUnrouted = await host.ingress.unroute(siteId).then(
    () => true,
    () => false,
  );
  for (const { id } of await containersOf(host, siteId)) await host.engine.removeContainer(id);
  const commands = { ...commandLabels(siteId), [label.agent]: host.agentId };
  for (const command of await host.engine.listContainers(commands))
    if (isToGo(command)) await host.engine.removeContainer(command.id);
  for (const { name } of await host.engine.volumes(siteLabels(siteId))) await host.engine.removeVolume(name);
  for (const tag of await host.engine.imageTags(host.imageRepository(siteId)))
    await host.engine.removeImage(tag);
  await leaveAccountNetwork(host, accountId);
  if (!isUnrouted) await host.ingress.unroute(siteId);
  return {};
}

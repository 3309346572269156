import { commandLabels, networkName, siteLabels } from "../docker/specs.ts";
import type { Handler } from "../host.ts";
import { containersOf } from "./release.ts";

/** Route, containers, those of its commands too, images, volumes, and the account's network when nothing uses it. */
export const deleteSite: Handler<"site.delete"> = async (host, { siteId, accountId }) => {
  // On a full disk this cannot be written down before what follows has made room.
  const isUnrouted = await host.ingress.unroute(siteId).then(
    () => true,
    () => false,
  );
  for (const { id } of await containersOf(host, siteId)) await host.engine.removeContainer(id);
  const commands = { ...commandLabels(siteId), "berth.agent": host.agentId };
  for (const { id } of await host.engine.listContainers(commands)) await host.engine.removeContainer(id);
  for (const { name } of await host.engine.volumes(siteLabels(siteId))) await host.engine.removeVolume(name);
  for (const tag of await host.engine.imageTags(host.imageRepository(siteId)))
    await host.engine.removeImage(tag);
  await host.engine.removeNetwork(networkName(accountId));
  if (!isUnrouted) await host.ingress.unroute(siteId);
  return {};
};

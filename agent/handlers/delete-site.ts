import { networkName, siteLabels } from "../docker/specs.ts";
import type { Handler } from "../host.ts";
import { containersOf } from "./release.ts";

/** Route, containers, images, and the account's network when nothing uses it. */
export const deleteSite: Handler<"site.delete"> = async (host, { siteId, accountId }) => {
  await host.ingress.unroute(siteId);
  for (const { id } of await containersOf(host, siteId)) await host.engine.removeContainer(id);
  const repository = `${host.imageRepository(siteId)}:`;
  for (const { tags } of await host.engine.listImages(siteLabels(siteId)))
    for (const tag of tags) if (tag.startsWith(repository)) await host.engine.removeImage(tag);
  await host.engine.removeNetwork(networkName(accountId));
  return {};
};

import type { Engine } from "./engine.ts";
import { siteLabels } from "./specs.ts";

/**
 * Removes the images of a site but those of the deployments in `kept`, and those that lost their name to the build of a
 * repeated attempt. One that a container uses stays.
 */
export async function removeSiteImages(
  engine: Pick<Engine, "imageTags" | "removeImage" | "removeUnnamedImages">,
  site: { siteId: string; repository: string },
  kept: readonly string[] = [],
): Promise<void> {
  const names = new Set(kept.map((deploymentId) => `${site.repository}:${deploymentId}`));
  for (const tag of await engine.imageTags(site.repository))
    if (!names.has(tag)) await engine.removeImage(tag);
  await engine.removeUnnamedImages(siteLabels(site.siteId));
}

import { maxHeld, type DatabaseVolumes, type Kept } from "../../protocol/agent/inventory.ts";
import { isId, type Id } from "../../protocol/ids.ts";
import { volumeName } from "../docker/database-objects.ts";
import { diskUsed } from "../docker/disk-used.ts";
import { mebibyte } from "../docker/mebibyte.ts";
import { removeSiteImages } from "../docker/site-images.ts";
import { labelsOf } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf } from "../ingress/ingress.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";
import { asideSince, isAside } from "../docker/aside.ts";
import { gather } from "./gather.ts";
import { label } from "../docker/labels.ts";

type Owned = Id<"site" | "database">;

const sizesWithinMs = 6000;

export async function idsHeld(host: Host): Promise<{ ids: Owned[]; databases: DatabaseVolumes[] }> {
  const { sites, databases } = await gather(host, new Set());
  return {
    ids: [...sites, ...databases].map(({ id }) => id),
    databases: databases
      .filter(({ volumes }) => volumes.length > 1)
      .slice(0, maxHeld)
      .map(({ id, volumes }) => ({ id, volumes })),
  };
}

/** This host's data of these resources, with sizes as far as they can be counted in time. */
export async function keptOf(host: Host, ids: readonly Owned[]): Promise<Kept[]> {
  const began = performance.now();
  const kept: Kept[] = [];
  for (const id of ids) {
    const { containers, volumes } = await allOf(host, id);
    const images = isId("site", id) ? await host.engine.imageTags(host.imageRepository(id)) : [];
    if (containers.length + volumes.length + images.length === 0) continue;
    const times = containers
      .flatMap((one) => asideSince(one) ?? [])
      .toSorted((a, b) => Number(a) - Number(b));
    kept.push({
      id,
      accountId: [...containers, ...volumes].map(({ labels }) => labels[label.account]).find(Boolean) ?? null,
      setAsideAt: times[0]?.toISOString() ?? null,
      running: containers.some(({ running }) => running),
      containerCount: containers.length,
      imageCount: images.length,
      volumes: await withSizes(volumes, began),
    });
  }
  return kept;
}

/** The same for single volumes of databases that run on another volume. */
export async function volumesKept(host: Host, databases: readonly DatabaseVolumes[]): Promise<Kept[]> {
  const began = performance.now();
  const kept: Kept[] = [];
  for (const { id, volumes: wanted } of databases) {
    const names = wanted.map((volume) => volumeName(id, volume));
    const volumes = (await allOf(host, id)).volumes.filter(({ name }) => names.includes(name));
    if (volumes.length === 0) continue;
    kept.push({
      id,
      accountId: volumes[0]?.labels[label.account] ?? null,
      setAsideAt: null,
      running: false,
      containerCount: 0,
      imageCount: 0,
      volumes: await withSizes(volumes, began),
    });
  }
  return kept;
}

/** Deletes permanently. @returns false if a container uses one of them */
export async function removeKeptVolumes(host: Host, { id, volumes }: DatabaseVolumes): Promise<boolean> {
  for (const volume of volumes) if (!(await host.engine.removeVolume(volumeName(id, volume)))) return false;
  return true;
}

async function withSizes(
  volumes: readonly { name: string; folder: string }[],
  began: number,
): Promise<Kept["volumes"]> {
  const shown = volumes.slice(0, 100);
  const limitMs = Math.floor(sizesWithinMs - (performance.now() - began));
  const folders = shown.map(({ folder }) => folder);
  const sizes = limitMs > 0 ? await diskUsed(folders, { limitMs }) : null;
  return shown.map(({ name }, index) => {
    const bytes = sizes?.[index];
    return { name, sizeMb: bytes === undefined ? null : Math.round(bytes / mebibyte) };
  });
}

/** Deletes permanently. @returns false if any of it runs or is routed, so that it is not aside */
export async function removeKept(host: Host, id: Owned): Promise<boolean> {
  const { engine, ingress } = host;
  const { containers, volumes } = await allOf(host, id);
  if (containers.some((one) => one.running || !isAside(one)) || servingOf(ingress, id).length > 0)
    return false;
  for (const container of containers) await engine.removeContainer(container.id);
  for (const { name } of volumes) await engine.removeVolume(name);
  if (isId("site", id)) await removeSiteImages(engine, { siteId: id, repository: host.imageRepository(id) });
  for (const { labels } of [...containers, ...volumes]) {
    const accountId = labels[label.account];
    if (accountId) await leaveAccountNetwork(host, accountId);
  }
  return true;
}

async function allOf({ engine, agentId }: Host, id: Owned) {
  const of = isId("site", id) ? { [label.site]: id } : { [label.database]: id };
  return {
    containers: await engine.listContainers({ ...labelsOf(id), [label.agent]: agentId }),
    volumes: await engine.volumes({ ...of, [label.agent]: agentId }),
  };
}

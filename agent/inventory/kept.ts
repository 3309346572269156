import type { Kept } from "../../protocol/agent/inventory.ts";
import { isId, type Id } from "../../protocol/ids.ts";
import { diskUsed } from "../docker/disk-used.ts";
import { labelsOf } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf } from "../ingress/ingress.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";
import { asideSince, isAside } from "../docker/aside.ts";
import { gather } from "./gather.ts";
import { label } from "../docker/labels.ts";

type Owned = Id<"site" | "database">;

const sizesWithinMs = 6000;
const mebibyte = 1024 * 1024;

export async function idsHeld(host: Host): Promise<Owned[]> {
  const { sites, databases } = await gather(host, new Set());
  return [...sites, ...databases].map(({ id }) => id);
}

/** What this host has of these, with sizes as far as they are counted in time. */
export async function keptOf(host: Host, ids: readonly Owned[]): Promise<Kept[]> {
  const began = performance.now();
  const kept: Kept[] = [];
  for (const id of ids) {
    const { containers, volumes } = await allOf(host, id);
    const images = isId("site", id) ? await host.engine.imageTags(host.imageRepository(id)) : [];
    if (containers.length + volumes.length + images.length === 0) continue;
    const leftMs = Math.floor(sizesWithinMs - (performance.now() - began));
    const folders = volumes.map(({ folder }) => folder);
    const sizes = leftMs > 0 ? await diskUsed(folders, { limitMs: leftMs }) : null;
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
      volumes: volumes.slice(0, 100).map(({ name }, index) => {
        const bytes = sizes?.[index];
        return { name, sizeMb: bytes === undefined ? null : Math.round(bytes / mebibyte) };
      }),
    });
  }
  return kept;
}

/** For good. false: something of it runs or is led to, so it is not aside. */
export async function removeKept(host: Host, id: Owned): Promise<boolean> {
  const { engine, ingress } = host;
  const { containers, volumes } = await allOf(host, id);
  if (containers.some((one) => one.running || !isAside(one)) || servingOf(ingress, id).length > 0)
    return false;
  for (const container of containers) await engine.removeContainer(container.id);
  for (const { name } of volumes) await engine.removeVolume(name);
  if (isId("site", id))
    for (const tag of await engine.imageTags(host.imageRepository(id))) await engine.removeImage(tag);
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

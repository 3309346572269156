import { maxHeld, type HeldDatabase, type HeldSite, type Inventory } from "../../protocol/agent/inventory.ts";
import { isId } from "../../protocol/ids.ts";
import { volumeName } from "../docker/database-objects.ts";
import type { ContainerSummary } from "../docker/engine.ts";
import { isReleaseCommand } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf } from "../ingress/ingress.ts";
import { isAside } from "../docker/aside.ts";
import { label } from "../docker/labels.ts";

type Means = Pick<Host, "engine" | "ingress" | "agentId" | "isRetiring">;

/** All or nothing: what could not be inspected must not count as gone. @throws if anything cannot be inspected */
export async function gather(
  { engine, ingress, agentId, isRetiring }: Means,
  out: ReadonlySet<string>,
): Promise<{ sites: HeldSite[]; databases: HeldDatabase[] }> {
  const all = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
  const volumes = await engine.volumes({ [label.agent]: agentId });
  const containers = all.filter(({ labels }) => !labels[label.copy] && !isReleaseCommand(labels));
  const idsIn = (label: string) => [...containers, ...volumes].flatMap(({ labels }) => labels[label] || []);
  const siteIds = new Set([...ingress.sites(), ...idsIn(label.site)]);
  const databaseIds = new Set(idsIn(label.database));
  return {
    sites: [...siteIds].flatMap((id) => {
      if (!isId("site", id)) return [];
      const own = containers.filter(({ labels }) => labels[label.site] === id);
      const routed = servingOf(ingress, id).map(({ containerId }) => containerId);
      const running = own.filter((one) => one.running);
      return {
        id,
        serving: deploymentsOf(own.filter((one) => routed.includes(one.id))),
        unrouted: running
          .filter((one) => !routed.includes(one.id) && !isRetiring(one.id))
          .slice(0, 50)
          .map((one) => ({ containerId: one.id, deploymentId: deploymentsOf([one])[0] ?? null })),
        memoryMb: memoryOf(running),
      };
    }),
    databases: [...databaseIds].flatMap((id) => {
      if (!isId("database", id)) return [];
      const own = containers.filter(({ labels, ...one }) => labels[label.database] === id && !isAside(one));
      const names = volumes.filter(({ labels }) => labels[label.database] === id).map(({ name }) => name);
      const first = volumeName(id);
      return {
        id,
        running: own.some((one) => one.running),
        out: out.has(id),
        volumes: names
          .filter((name) => name === first || /^-job_[0-9a-z]+$/.test(name.slice(first.length)))
          .slice(0, 20)
          .map((name) => (name === first ? null : name.slice(first.length + 1))),
        memoryMb: memoryOf(own.filter((one) => one.running)),
      };
    }),
  };
}

const deploymentsOf = (containers: readonly ContainerSummary[]) => [
  ...new Set(
    containers.flatMap(({ labels }) => {
      const id = labels[label.deployment] ?? "";
      return isId("deployment", id) ? [id] : [];
    }),
  ),
];

const memoryOf = (containers: readonly ContainerSummary[]): number =>
  containers.reduce((sum, { labels }) => sum + (Number(labels[label.memory]) || 0), 0);

/** In the order of the ids; each page is complete for its range. */
export function inPages(
  { sites, databases }: { sites: HeldSite[]; databases: HeldDatabase[] },
  asOf: string,
): Inventory[] {
  const ids = [...sites, ...databases].map(({ id }) => id as string).toSorted();
  const bounds: string[] = [];
  for (let at = maxHeld; at < ids.length; at += maxHeld) bounds.push(ids[at - 1] ?? "");
  return [...bounds, null].map((upTo, page) => {
    const after = bounds[page - 1] ?? null;
    const isHere = ({ id }: { id: string }) =>
      (after === null || id > after) && (upTo === null || id <= upTo);
    const here = { sites: sites.filter(isHere), databases: databases.filter(isHere) };
    return { type: "inventory", asOf, after, upTo, ...here };
  });
}

import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";

/** This agent's databases. */
export type RunningDatabases = {
  /** Those that run, with the container of each. */
  list: () => Promise<ReadonlyMap<string, string>>;
  /** All of which the host has a container or a volume. */
  held: () => Promise<ReadonlySet<string>>;
  /** Call when a container started or ended, or events were lost. */
  changed: () => void;
};
type Lister = Pick<Engine, "listContainers" | "volumes">;

/** Lists containers and volumes again only after a change: most minutes there is none. */
export function openRunningDatabases(engine: Lister, agentId: string): RunningDatabases {
  let known: ReturnType<typeof found> | undefined;
  const changed = () => void (known = undefined);
  const all = () =>
    (known ??= found(engine, agentId).catch((error: unknown) => {
      changed();
      throw error;
    }));
  return {
    changed,
    list: async () => (await all()).running,
    held: async () => (await all()).held,
  };
}

async function found(engine: Lister, agentId: string) {
  const containers = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
  const volumes = await engine.volumes({ [label.agent]: agentId });
  const running = new Map(
    containers.flatMap(({ id, labels, running: runs }) => {
      const databaseId = labels[label.database];
      return databaseId && runs ? [[databaseId, id] as const] : [];
    }),
  );
  const held = new Set([...containers, ...volumes].flatMap(({ labels }) => labels[label.database] ?? []));
  return { running, held };
}

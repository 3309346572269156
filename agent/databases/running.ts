import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";

/** This agent's running databases, with the container of each. */
export type RunningDatabases = {
  list: () => Promise<ReadonlyMap<string, string>>;
  /** Call when a container started or ended, or events were lost. */
  changed: () => void;
};

/** Lists containers again only after a change: most minutes there is none. */
export function openRunningDatabases(
  engine: Pick<Engine, "listContainers">,
  agentId: string,
): RunningDatabases {
  let known: Promise<ReadonlyMap<string, string>> | undefined;
  const changed = () => void (known = undefined);
  return {
    changed,
    list: () =>
      (known ??= runningDatabases(engine, agentId).catch((error: unknown) => {
        changed();
        throw error;
      })),
  };
}

async function runningDatabases(
  engine: Pick<Engine, "listContainers">,
  agentId: string,
): Promise<ReadonlyMap<string, string>> {
  const containers = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
  return new Map(
    containers.flatMap(({ id, labels, running }) => {
      const databaseId = labels[label.database];
      return databaseId && running ? [[databaseId, id] as const] : [];
    }),
  );
}

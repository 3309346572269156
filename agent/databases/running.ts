import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";

/** This agent's databases that run, and the container of each. */
export type RunningDatabases = {
  list: () => Promise<ReadonlyMap<string, string>>;
  /** A container started or ended, or what happened to them was not heard. */
  changed: () => void;
};

/** The engine is asked again only after something has changed: most minutes nothing has. */
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

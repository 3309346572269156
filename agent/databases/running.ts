import type { Engine } from "../docker/engine.ts";

/** This agent's databases that run, and the container of each. */
export async function runningDatabases(
  engine: Pick<Engine, "listContainers">,
  agentId: string,
): Promise<ReadonlyMap<string, string>> {
  const containers = await engine.listContainers({ "berth.managed": "true", "berth.agent": agentId });
  return new Map(
    containers.flatMap(({ id, labels, running }) => {
      const databaseId = labels["berth.database"];
      return databaseId && running ? [[databaseId, id] as const] : [];
    }),
  );
}

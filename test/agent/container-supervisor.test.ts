import { expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import type { Crash, Records } from "../../agent/running/records.ts";
import { ContainerSupervisor } from "../../agent/running/container-supervisor.ts";

/** A host on which these serve a site each, and ended so many milliseconds ago. */
function hostWith(endedAgoMs: Record<string, number>, changes: Partial<Engine> = {}) {
  const started: string[] = [];
  const crashes: Crash[] = [];
  const disk = { isFull: false };
  let isParked = false;
  const write = () => {
    if (disk.isFull) throw new Error("database or disk is full");
  };
  const engine = {
    listContainers: () => Promise.resolve([{}]),
    stopContainer: () => Promise.resolve(),
    inspectContainer: (id: string) =>
      Promise.resolve({
        id,
        running: started.includes(id),
        pid: 1,
        finishedAt: new Date(Date.now() - (endedAgoMs[id] ?? 0)),
        labels: {},
      }),
    startContainer: (id: string) => Promise.resolve(void started.push(id)),
    ...changes,
  } as unknown as Engine;
  const ingress = {
    sites: () => Object.keys(endedAgoMs),
    current: (containerId: string) =>
      isParked ? "parked" : [{ containerId, address: "10.0.0.2", port: 3000, deploymentId: "dep_1" }],
    fallback: () => null,
    withdraw: () => Promise.resolve(void (isParked = true)),
  } as unknown as Ingress;
  const supervisor = new ContainerSupervisor({
    engine,
    ingress,
    records: { addEvent: write, addCrash: write } as unknown as Records,
    agentId: "a",
    out: new Set(),
    onCrash: (crash) => crashes.push(crash),
    isHandingOver: () => false,
  });
  for (const id of Object.keys(endedAgoMs)) supervisor.doubt(id);
  return { supervisor, started, crashes, disk };
}

it("starts what ended a moment ago and serves, also where the clock was set back since; what ended just now has a moment", async () => {
  const { supervisor, started } = hostWith({
    justNow: 0,
    before: 10_000,
    "in an hour, as it seems": -3_600_000,
  });
  await supervisor.look();
  expect(started).toEqual(["before", "in an hour, as it seems"]);
});

it("what is gone while the disk is full is said to be as soon as there is room to write it down", async () => {
  const { supervisor, crashes, disk } = hostWith(
    { gone: 0 },
    { inspectContainer: () => Promise.resolve(null) },
  );
  disk.isFull = true;
  for (let looks = 0; looks < 10; looks++) await supervisor.look();
  expect(crashes).toEqual([]);
  disk.isFull = false;
  await supervisor.look();
  expect(crashes).toMatchObject([{ deploymentId: "dep_1", error: expect.stringContaining("removed") }]);
});

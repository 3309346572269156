import { expect, it } from "vitest";
import type { ContainerSpec, Engine } from "../../agent/docker/engine.ts";
import { siteContainer, volumeName } from "../../agent/docker/specs.ts";
import type { Host } from "../../agent/host.ts";
import { createContainer } from "../../agent/sites/create-container.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { runSpec } from "../support/run-spec.ts";

it("a volume that a running container writes to is filled with nothing of a new version's image", async () => {
  const run = runSpec({
    volumes: [
      { name: "used", mountPath: "/used" },
      { name: "new", mountPath: "/new" },
    ],
  });
  const made: ContainerSpec[] = [];
  const engine: Partial<Engine> = {
    ensureNetwork: async () => undefined,
    volumes: async () => [],
    listContainers: async () => [
      { id: "c", name: "c", labels: { "berth.volumes": "used" }, running: true },
      { id: "d", name: "d", labels: { "berth.volumes": "new" }, running: false },
    ],
    createContainer: async (spec) => {
      made.push(spec);
      return Promise.resolve("e");
    },
  };
  const host = { engine, agentId: "agent", buildRoom: emptyDisk() } as unknown as Host;
  const spec = siteContainer("agent", run, "dep_1", "image", "");
  expect(await createContainer(host, run, spec)).toBe("e");
  expect(made[0]?.HostConfig?.Mounts).toEqual([
    {
      Type: "volume",
      Source: volumeName(run.siteId, "used"),
      Target: "/used",
      VolumeOptions: { NoCopy: true },
    },
    { Type: "volume", Source: volumeName(run.siteId, "new"), Target: "/new" },
  ]);
});

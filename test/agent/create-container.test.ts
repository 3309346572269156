import { readdirSync } from "node:fs";
import { expect, it, onTestFinished, vi } from "vitest";
import type { ContainerSpec, Engine } from "../../agent/docker/engine.ts";
import { siteContainer, volumeName } from "../../agent/docker/specs.ts";
import type { Host } from "../../agent/host.ts";
import { undoLeftOvers } from "../../agent/sites/left-over.ts";
import { createContainer } from "../../agent/sites/create-container.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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

it("volumes that an agent was killed with while their files were immutable are given up by the next one, and a site's made again", async () => {
  const run = runSpec({ volumes: [{ name: "data", mountPath: "/data" }] });
  const data = {
    name: volumeName(run.siteId, "data"),
    labels: { of: "the site" },
    folder: temporaryFolder(),
  };
  const nameless = { name: "ab".repeat(32), labels: {}, folder: temporaryFolder() };
  const full = new AbortController();
  const done: string[] = [];
  const engine: Partial<Engine> = {
    ensureNetwork: async () => undefined,
    volumes: async () => [data],
    listContainers: async () => [],
    unclaimedVolumes: async () => [nameless],
    createContainer: () => {
      full.abort();
      return new Promise(() => undefined);
    },
    removeVolume: async (name) => done.push(`removed ${name}`) > 0,
    ensureVolume: async (name, labels) => void done.push(`made ${name} ${JSON.stringify(labels)}`),
  };
  const workDirectory = temporaryFolder();
  const host = {
    engine,
    agentId: "agent",
    buildRoom: emptyDisk(full.signal),
    workDirectory,
  } as unknown as Host;
  // Without chattr, as the test's own process goes on beside the next agent.
  vi.stubEnv("PATH", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  void createContainer(host, run, siteContainer("agent", run, "dep_1", "image", ""));
  await vi.waitFor(() => expect(readdirSync(workDirectory)).toHaveLength(1));
  await undoLeftOvers(host);
  expect(done).toEqual([
    `removed ${nameless.name}`,
    `removed ${data.name}`,
    `made ${data.name} {"of":"the site"}`,
  ]);
  expect(readdirSync(workDirectory)).toEqual([]);
});

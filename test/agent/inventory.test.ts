import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { databaseContainer } from "../../agent/databases/container.ts";
import { databaseLabels, volumeName } from "../../agent/docker/database-objects.ts";
import { restartDatabase } from "../../agent/handlers/restart-database.ts";
import { siteContainer, volumeLabels } from "../../agent/docker/specs.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { Host } from "../../agent/host.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import { carryOut } from "../../agent/inventory/carry-out.ts";
import { gather, inPages } from "../../agent/inventory/gather.ts";
import { idsHeld, keptOf, removeKept, removeKeptVolumes, volumesKept } from "../../agent/inventory/kept.ts";
import { InventoryReporter } from "../../agent/inventory/reporter.ts";
import { openRetirement } from "../../agent/sites/retire.ts";
import { maxHeld, type HeldSite } from "../../protocol/agent/inventory.ts";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import { formatId } from "../../protocol/ids.ts";
import { closedAccess } from "../support/closed-access.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { jobRun } from "../support/job-run.ts";
import { MemoryEngine } from "../support/memory-engine.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const idOf = <K extends "database" | "account" | "deployment" | "site">(kind: K, number = 1) =>
  formatId(kind, number, new Uint8Array(10));
const database = databaseSpec({ databaseId: idOf("database"), accountId: idOf("account"), type: "redis" });
const { databaseId } = database;
const run = runSpec({
  volumes: [{ name: "data", mountPath: "/data" }],
  lifecycle: { stopTimeoutSeconds: 45 },
});
const { siteId } = run;
const idle = () => false;
const from = { out: new Set<string>() };

const folder = temporaryFolder();
let docker: MemoryEngine;
let routes: Map<string, Target[] | "parked">;
/** What served before a probation. */
let fallback: Target[] | null;
/** Containers whose last lines were kept. */
let keptLines: string[];
let host: Host;

/** A host on which one site and one database run. */
beforeEach(async () => {
  docker = new MemoryEngine();
  docker.state.networks.push(`berth-${run.accountId}`, `berth-${database.accountId}`);
  Object.assign(docker.state.images, { image: "sha256:image", [database.image]: "sha256:redis" });
  routes = new Map();
  fallback = null;
  keptLines = [];
  const { engine } = docker;
  host = {
    agentId: "agent",
    engine,
    workDirectory: mkdtempSync(join(folder, "work-")),
    imageRepository: () => "image-of-a-site",
    publicAccess: closedAccess("agent"),
    isolation: { demand: () => Promise.resolve(), refresh: () => Promise.resolve() },
    ...openRetirement({
      engine,
      agentId: "agent",
      patience: { drainSeconds: 600, drainMaxSeconds: 600 },
      drains: { drainUntil: () => undefined, drainsUntil: () => null, drained: () => undefined },
      keepLastLines: (id) => Promise.resolve(void keptLines.push(id)),
      onError: (error) => expect.fail(String(error)),
    }),
    ingress: {
      sites: () => [...routes.keys()],
      current: (id: string) => routes.get(id) ?? null,
      lost: () => [],
      fallback: () => fallback,
      settle: () => Promise.resolve(void (fallback = null)),
      readdress: () => Promise.resolve(),
      unroute: (id: string) => Promise.resolve(void routes.delete(id)),
    },
  } as unknown as Host;
  await engine.ensureVolume(`berth-${siteId}-data`, volumeLabels("agent", run, "data"));
  await engine.ensureVolume(volumeName(databaseId), databaseLabels("agent", databaseId, database.accountId));
  const files = docker.state.volumes[volumeName(databaseId)]!.files;
  Object.assign(files, { ".berth-database": databaseId, "users.acl": "" });
  const of = await engine.createContainer(databaseContainer("agent", database, "172.18.0.0/16"));
  Object.assign(docker.find(of)!, { running: true, wasStarted: true });
  const containerId = await runs(1);
  routes.set(siteId, [{ containerId, address: "10.0.0.2", port: 3000 }]);
});

/** A container of this deployment runs. */
async function runs(deployment: number): Promise<string> {
  const id = await docker.engine.createContainer(
    siteContainer("agent", run, idOf("deployment", deployment), "image", ""),
  );
  await docker.engine.startContainer(id);
  return id;
}
const namesAre = () => docker.state.containers.map(({ name, running }) => `${name.slice(0, 6)} ${running}`);

describe("what a host says it has", () => {
  it("are its sites with what serves and what runs beside, and its databases with their volumes", async () => {
    const beside = await runs(2);
    const { memoryMb } = run.limits;
    expect(await gather(host, from.out)).toEqual({
      sites: [
        {
          id: siteId,
          serving: [idOf("deployment")],
          unrouted: [{ containerId: beside, deploymentId: idOf("deployment", 2) }],
          memoryMb: 2 * memoryMb,
        },
      ],
      databases: [{ id: databaseId, running: true, out: false, volumes: [null], memoryMb: 256 }],
    });
  });

  it("also where only a volume is left of them, or a route", async () => {
    docker.state.containers = [];
    routes.set(idOf("site", 2), "parked");
    const { sites, databases } = await gather(host, new Set([databaseId]));
    expect(new Map(sites.map(({ id, serving }) => [id, serving]))).toEqual(
      new Map([
        [siteId, []],
        [idOf("site", 2), []],
      ]),
    );
    expect(databases).toMatchObject([{ running: false, out: true, volumes: [null], memoryMb: 0 }]);
  });

  it("goes in parts that follow each other without a gap", () => {
    const sites = Array.from({ length: 2 * maxHeld + 1 }, (_, n): HeldSite => {
      return { id: idOf("site", n), serving: [], unrouted: [], memoryMb: 0 };
    });
    const pages = inPages({ sites: sites.toReversed(), databases: [] }, "2026-01-01T00:00:00.000Z");
    expect(pages.map(({ sites: part }) => part.length)).toEqual([maxHeld, maxHeld, 1]);
    expect(pages.map(({ after }) => after)).toEqual([null, ...pages.slice(0, 2).map(({ upTo }) => upTo)]);
    expect(pages.at(-1)?.upTo).toBeNull();
  });
});

describe("what no record knows", () => {
  const both = { setAside: [siteId, databaseId], retire: [] };

  it("is led to no more, stopped and kept with its data, also by the next agents, and however often it is said", async () => {
    await carryOut(host, both, idle);
    await carryOut(host, both, idle);
    for (let agents = 0; agents < 2; agents++) await sweep(host);
    expect(routes.size).toBe(0);
    expect(namesAre()).toEqual(["aside- false", "aside- false"]);
    expect(Object.keys(docker.state.volumes)).toHaveLength(2);
    expect(await gather(host, from.out)).toMatchObject({
      sites: [{ unrouted: [], memoryMb: 0 }],
      databases: [{ running: false, volumes: [null] }],
    });
    const [aside] = await keptOf(host, [siteId]);
    expect(aside).toMatchObject({
      running: false,
      containerCount: 1,
      volumes: [{ name: `berth-${siteId}-data` }],
    });
    expect(Date.parse(aside?.setAsideAt ?? "")).toBeGreaterThan(0);
  });

  it("runs again with its data when a record names it again, and nothing is left aside", async () => {
    await carryOut(host, both, idle);
    await restartDatabase(host, { database }, jobRun());
    const own = docker.state.containers.filter(({ labels }) => labels["berth.database"]);
    expect(own).toMatchObject([{ name: `berth-${databaseId}`, running: true }]);
  });

  it("is left to a job that was taken meanwhile", async () => {
    await carryOut(host, both, () => true);
    expect(namesAre()).toEqual(["berth- true", "berth- true"]);
  });

  it("are the volumes of a database that runs on another one, and they go for good when an operator says so", async () => {
    const later = formatId("job", 5, new Uint8Array(10));
    const name = volumeName(databaseId, later);
    await docker.engine.ensureVolume(name, databaseLabels("agent", databaseId, database.accountId));
    const { ids, databases } = await idsHeld(host);
    expect([ids, databases]).toEqual([[siteId, databaseId], [{ id: databaseId, volumes: [null, later] }]]);
    expect(await volumesKept(host, [{ id: databaseId, volumes: [later] }])).toMatchObject([
      { id: databaseId, accountId: database.accountId, running: false, volumes: [{ name }] },
    ]);
    expect(await removeKeptVolumes(host, { id: databaseId, volumes: [null] })).toBe(false);
    expect(await removeKeptVolumes(host, { id: databaseId, volumes: [later] })).toBe(true);
    expect(Object.keys(docker.state.volumes)).not.toContain(name);
  });

  it("goes for good only when it is aside, and an operator says so", async () => {
    expect(await removeKept(host, siteId)).toBe(false);
    await carryOut(host, both, idle);
    expect([await removeKept(host, siteId), await removeKept(host, databaseId)]).toEqual([true, true]);
    expect(docker.state).toMatchObject({ containers: [], volumes: {} });
  });
});

it("what runs beside what serves goes, but never what serves, nor the last that runs", async () => {
  const serving = routes.get(siteId) as Target[];
  const beside = await runs(2);
  const retire = [{ siteId, containerIds: [beside, serving[0]!.containerId] }];
  routes.delete(siteId);
  await carryOut(host, { setAside: [], retire }, idle);
  expect(docker.find(beside)?.running).toBe(true);
  routes.set(siteId, serving);
  await carryOut(host, { setAside: [], retire }, idle);
  expect([docker.find(beside), docker.find(serving[0]!.containerId)?.running]).toEqual([undefined, true]);
});

it("what runs beside what serves has the time to stop that its site gives it, and leaves its last lines", async () => {
  const beside = await runs(2);
  const stopped = vi.spyOn(docker.engine, "stopContainer");
  await carryOut(host, { setAside: [], retire: [{ siteId, containerIds: [beside] }] }, idle);
  expect([stopped.mock.calls, keptLines]).toEqual([[[beside, 45]], [beside]]);
});

it("a replaced version that still drains is left to end what it began, and its memory counts", async () => {
  const [{ containerId: serving }] = routes.get(siteId) as [Target];
  const old = await runs(2);
  host.retire(siteId, [serving]);
  await vi.waitUntil(() => host.isRetiring(old));
  const { sites } = await gather(host, from.out);
  expect(sites).toMatchObject([{ unrouted: [], memoryMb: 2 * run.limits.memoryMb }]);
  // An inventory that was taken before it was replaced.
  await carryOut(host, { setAside: [], retire: [{ siteId, containerIds: [old] }] }, idle);
  expect(docker.find(old)?.running).toBe(true);
  await host.recall(old);
  expect(host.isRetiring(old)).toBe(false);
});

it("a probation that no job goes on with is over once the record says that what served before it goes", async () => {
  const beside = await runs(2);
  fallback = [{ ...(routes.get(siteId) as Target[])[0]!, containerId: beside }];
  await carryOut(host, { setAside: [], retire: [{ siteId, containerIds: [beside] }] }, idle);
  expect([docker.find(beside), fallback]).toEqual([undefined, null]);
});

describe("a host says what it has", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
  afterEach(() => void vi.useRealTimers());
  const now = "2026-01-01T00:00:00.000Z";

  it("after each welcome and every ten minutes, by the control plane's clock", async () => {
    const reporter = new InventoryReporter({ host, isWorkingOn: idle, out: () => Promise.resolve(from.out) });
    const sent: FromAgent[] = [];
    expect(reporter.serviceTimeMs()).toBe(null);
    reporter.connected((message) => sent.push(message), now);
    await vi.waitUntil(() => sent.length === 1);
    vi.advanceTimersByTime(600_000);
    await vi.waitUntil(() => sent.length === 2);
    expect(sent).toMatchObject([
      { type: "inventory", asOf: expect.stringMatching(/T00:00:00/) as string },
      { type: "inventory", asOf: expect.stringMatching(/T00:10:00/) as string },
    ]);
    reporter.disconnected();
    vi.advanceTimersByTime(600_000);
    expect(sent).toHaveLength(2);
    expect(new Date(reporter.serviceTimeMs() ?? 0).toISOString()).toMatch(/T00:20:00/);
  });
});

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import tar from "tar-stream";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { networkLabels, networkName, siteContainer } from "../../agent/docker/specs.ts";
import { handOver, isHandingOver } from "../../agent/sites/hand-over.ts";
import { readdress } from "../../agent/sites/readdress.ts";
import type { Host } from "../../agent/host.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import { ContainerSupervisor } from "../../agent/running/container-supervisor.ts";
import { openRecords, type Crash, type Records } from "../../agent/running/records.ts";
import { watchSites, type Watched } from "../../agent/running/watch.ts";
import { bridgeName } from "../../agent/isolation/rules.ts";
import { docker, engine, newId } from "../support/engine.ts";
import { TestResponder } from "../support/ingress.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { databaseExits } from "../../agent/databases/exits.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const network = networkName(accountId);

let responder: TestResponder;
let host: Host;
const folder = temporaryFolder();
let records: Records;
let ingressId: string;
let means: Pick<Watched, "engine" | "ingress" | "records" | "agentId" | "out">;
let supervisor: ContainerSupervisor;
const made: string[] = [];
const crashes: Crash[] = [];
const watching = new AbortController();

beforeAll(async () => {
  records = openRecords(join(folder, "running.db"));
  responder = await TestResponder.start();
  const ingressLike = { Image: "node:24-bookworm-slim", Cmd: ["true"], Labels: { "berth.ingress": agentId } };
  ingressId = await engine.createContainer({ ...ingressLike, name: `berth-ingress-${agentId}` });
  made.push(ingressId);
  host = { agentId, engine, ingress: responder.openRoutes() } as unknown as Host;
  const { ingress } = host;
  await engine.ensureNetwork(network, bridgeName(agentId, network), networkLabels(accountId));
  means = { engine, ingress, records, agentId, out: new Set<string>() };
  const onCrash = (crash: Crash) => void crashes.push(crash);
  supervisor = new ContainerSupervisor({ ...means, onCrash, isHandingOver });
  const nothing = () => undefined;
  const follow = (siteId: string, id: string) => void readdress(host, siteId, id).catch(nothing);
  watchSites(
    {
      ...means,
      onCrash,
      onStart: follow,
      onEnd(siteId, id) {
        follow(siteId, id);
        supervisor.doubt(id);
      },
      onConnect: nothing,
      databaseExits: databaseExits(engine),
      onDatabaseOut: nothing,
    },
    watching.signal,
  );
  supervisor.watch(100, watching.signal);
});
afterAll(async () => {
  watching.abort();
  await Promise.all(made.map((id) => engine.removeContainer(id)));
  await engine.removeNetwork(network);
  await responder.stop();
  records.close();
});
beforeEach(() => void (crashes.length = 0));

const app = `#!/usr/local/bin/node
process.on("SIGTERM", () => process.exit(1)); setInterval(() => {}, 1000); console.log("up")`;

/** A site in service, of containers that run a file of theirs. */
async function inService(replicas = 1, agent = agentId) {
  const siteId = newId("site");
  const deploymentId = newId("deployment");
  const run = runSpec({ siteId, accountId, replicas });
  const targets: Target[] = [];
  for (let replica = 1; replica <= replicas; replica++) {
    const spec = siteContainer(agent, run, deploymentId, "node:24-bookworm-slim", "", replica);
    // So that what cannot be run is refused by the engine, not by its init.
    const HostConfig = { ...spec.HostConfig, Init: false };
    const id = await engine.createContainer({ ...spec, Cmd: ["/app"], Entrypoint: [], HostConfig });
    made.push(id);
    const files = tar.pack();
    files.entry({ name: "app", mode: 0o755 }, app);
    files.finalize();
    await engine.writeFiles(id, "/", files);
    await engine.startContainer(id);
    const address = (await engine.inspectContainer(id))?.addresses[network] ?? "";
    targets.push({ containerId: id, address, port: 3000, deploymentId });
  }
  const names = [`${siteId}.localhost`];
  await host.ingress.route(siteId, names, targets);
  const ids = targets.map(({ containerId }) => containerId);
  // Until then nothing of it hears a SIGTERM.
  await vi.waitUntil(
    async () =>
      (await Promise.all(ids.map((id) => engine.lastLines(id, 1)))).every(({ length }) => length > 0),
    within,
  );
  return { siteId, deploymentId, names, ids, id: ids[0] ?? "" };
}
const runs = async (id: string) => (await engine.inspectContainer(id))?.running ?? false;
/** So long ago that nobody is about to say why. */
const hasEnded = (id: string) =>
  vi.waitUntil(async () => {
    const state = await engine.inspectContainer(id);
    return state?.running === false && Date.now() - (state.finishedAt?.getTime() ?? Infinity) > 4000;
  }, within);
const within = { timeout: 30_000, interval: 100 };
const kindsOf = (siteId: string) => records.events(siteId).map(({ kind }) => kind);

it.each([
  ["stopped", ["stop", "--time", "1"]],
  ["killed", ["kill"]],
] as const)("a container that somebody %s by hand runs again, and is reached", async (_, command) => {
  const { siteId, id } = await inService();
  await docker(...command, id);
  // It is away for a few seconds only, which a slow machine may not see.
  await vi.waitUntil(() => kindsOf(siteId).join() === "start,stop,start", within);
  expect(await runs(id)).toBe(true);
  expect(host.ingress.current(siteId)).toMatchObject([{ containerId: id }]);
  expect(crashes).toEqual([]);
});

it("one whose end nobody heard of runs again when the engine is there again", async () => {
  const { id } = await inService(1, "another agent's events");
  await docker("kill", id);
  await hasEnded(id);
  const late = new ContainerSupervisor({ ...means, onCrash: () => undefined, isHandingOver });
  await late.look();
  expect(await runs(id)).toBe(false);
  late.doubtAll();
  await late.look();
  expect(await runs(id)).toBe(true);
});

it("one that is gone ends the service with the reason, within half a minute", async () => {
  const { siteId, deploymentId, id } = await inService();
  await docker("rm", "--force", id);
  await vi.waitUntil(() => crashes.length > 0, within);
  expect(crashes).toMatchObject([{ siteId, deploymentId, error: expect.stringContaining("removed") }]);
  expect(host.ingress.current(siteId)).toBe("parked");
  expect(kindsOf(siteId).at(-1)).toBe("crash_loop");
});

it("one that the engine cannot start again ends the service with the engine's reason and its last lines", async () => {
  const { siteId, deploymentId, id } = await inService();
  // The engine's own restart fails, and no event says so.
  await docker("exec", id, "sh", "-c", "rm /app; kill 1");
  await vi.waitUntil(() => crashes.length > 0, within);
  const [crash] = crashes;
  expect(crash).toMatchObject({ siteId, deploymentId });
  expect(crash?.error).toMatch(
    /^The app is not running.*the engine reports ".*OCI runtime.*no such file.*".*Its last lines: up$/s,
  );
  expect(host.ingress.current(siteId)).toBe("parked");
});

it("an engine that has none of this host's containers is waited for: nothing is said to be gone", async () => {
  const { siteId, id } = await inService();
  await engine.removeContainer(ingressId);
  await docker("rm", "--force", id);
  await vi.waitUntil(() => kindsOf(siteId).includes("stop"), within);
  for (let look = 0; look < 10; look++) await supervisor.look();
  expect([crashes, host.ingress.current(siteId)]).toMatchObject([[], [{ containerId: id, down: true }]]);
  const labels = { "berth.ingress": agentId };
  made.push(
    await engine.createContainer({
      Image: "node:24-bookworm-slim",
      Labels: labels,
      name: `berth-ingress-${agentId}`,
    }),
  );
  await vi.waitUntil(() => crashes.length > 0, within);
});

it("of several replicas the others serve on when one is gone; all that are gone end the service", async () => {
  const { siteId, ids } = await inService(2);
  const [first = "", second = ""] = ids;
  await docker("rm", "--force", second);
  await vi.waitUntil(() => kindsOf(siteId).includes("crash_loop"), within);
  expect(records.events(siteId).at(-1)?.detail).toMatch(/other replicas keep serving/);
  expect([crashes, await runs(first)]).toEqual([[], true]);
  expect(host.ingress.current(siteId)).toMatchObject([
    { containerId: first },
    { containerId: second, down: true },
  ]);
  await docker("rm", "--force", first);
  await vi.waitUntil(() => crashes.length > 0, within);
});

it("one that a job or its owner stopped stays so", async () => {
  const [parked, handedOver] = [await inService(), await inService()];
  await host.ingress.park(parked.siteId, parked.names);
  await docker("stop", "--time", "1", parked.id);
  await handOver(handedOver.siteId, async () => {
    await docker("stop", "--time", "1", handedOver.id);
    await hasEnded(handedOver.id);
    await supervisor.look();
    expect([await runs(parked.id), await runs(handedOver.id)]).toEqual([false, false]);
  });
  // The job left it in service, stopped.
  await vi.waitUntil(() => runs(handedOver.id), within);
  expect(crashes).toEqual([]);
});

import { randomBytes } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { label } from "../../agent/docker/labels.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { compose } from "../../agent/compose.ts";
import { readConfig } from "../../agent/config.ts";
import type { SiteEvent } from "../../protocol/api/running.ts";
import type { Id } from "../../protocol/ids.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { DatabaseHost } from "../support/database-host.ts";
import { testedImages } from "../support/database-spec.ts";
import { docker, engine, newId } from "../support/engine.ts";
import { type Connection, Hub } from "../support/hub.ts";
import { answers, TestResponder } from "../support/ingress.ts";

const token = `hst_0${randomBytes(43).toString("hex").slice(0, 43)}`;

let hub: Hub;
let responder: TestResponder;
let config: ReturnType<typeof readConfig>;
const stops: (() => Promise<void>)[] = [];

beforeAll(() => ensureImages(["node:24-bookworm-slim", testedImages.postgresql]), 15 * 60_000);
beforeAll(async () => {
  hub = await Hub.open();
  responder = await TestResponder.start();
  config = readConfig({
    BERTH_URL: hub.url,
    BERTH_HOST_TOKEN: token,
    BERTH_STATE_DIR: dirname(dirname(responder.file)),
    BERTH_FIREWALL: "off",
    BERTH_INGRESS_ADDRESS: "127.0.0.1",
    BERTH_INGRESS_PORT: String(await freePort()),
    BERTH_RESPONDER_PORT: String(responder.dnsPort),
    BERTH_STATUS_PORT: String(responder.statusPort),
    ...(process.env["DOCKER_HOST"] && {
      BERTH_DOCKER_SOCKET: process.env["DOCKER_HOST"].replace("unix://", ""),
    }),
  });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  const found = await ingress();
  if (found) await engine.removeContainer(found.id);
  await engine.removeVolume(accessLogVolume(config.agentId));
  hub.close();
  await responder.stop();
});

/** What this agent recorded of a site or a database, as the control plane asks it. */
async function eventsOf(connection: Connection, siteId: Id<"site" | "database">): Promise<SiteEvent[]> {
  connection.send({ type: "ask", requestId: siteId, question: { kind: "events", siteId } });
  const { answer } = await connection.next("answer");
  return answer.kind === "events" ? answer.events : [];
}

const ingress = () => engine.inspectContainer(`berth-ingress-${config.agentId}`);

async function started(changes: Partial<typeof config> = {}) {
  const agent = compose({ ...config, ...changes }, { programFile: "agent.ts", exit: () => undefined });
  stops.push(() => agent.stop());
  await agent.start();
  const connection = await hub.connection();
  const hello = await connection.next("hello");
  connection.send({ type: "welcome", epoch: 1, now: new Date().toISOString() });
  return { agent, connection, hello };
}

/** A way to the engine that a test may cut off. */
async function wayToEngine() {
  const connections = new Set<Socket>();
  const dockerSocket = join(config.stateDirectory, "engine.sock");
  const way = createServer((near) => {
    const far = connect(config.dockerSocket);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      connections.add(one);
      one.on("error", () => other.destroy()).pipe(other);
    }
  });
  const open = () => new Promise<void>((resolve) => void way.listen(dockerSocket, resolve));
  const close = () => void way.close();
  await open();
  stops.push(async () => close());
  const cut = () => connections.forEach((one) => one.destroy());
  return { dockerSocket, cut, open, close };
}

it("an agent that is stopped leaves its ingress running, and another one takes it over", async () => {
  const first = await started();
  expect(first.hello).toMatchObject({ running: [], finished: [], slots: config.slots });
  expect(await first.connection.next("ready")).toMatchObject({ free: config.slots });
  const before = await ingress();
  expect(before?.running).toBe(true);

  await first.agent.stop();
  await first.connection.closed;
  const second = await started();
  expect(await second.connection.next("inventory")).toMatchObject({ sites: [], databases: [] });
  expect((await ingress())?.id).toBe(before?.id);
});

it("an agent says hello as services of before 29 November 2026 demand it, to whose version it is to return", async () => {
  const { hello } = await started();
  expect(hello.facts).toMatchObject({ diskFreeMb: expect.any(Number) as number });
});

it("an agent replaces an ingress that hangs, and tells the control plane", async () => {
  const { connection } = await started();
  const disk = { freeMb: expect.any(Number) as number, neededMb: expect.any(Number) as number };
  expect(await connection.next("condition")).toMatchObject({ disk, ingressProblem: null });
  expect(await connection.next("ready")).not.toHaveProperty("ingressReplacedAt");
  const hung = await ingress();
  if (!hung) throw new Error("There is no ingress");
  await answers(config.ingress.port, "unknown.localhost", 404);
  await engine.pauseContainer(hung.id);
  expect(await connection.next("ready")).toHaveProperty("ingressReplacedAt");
  expect((await ingress())?.id).not.toBe(hung.id);
  await answers(config.ingress.port, "unknown.localhost", 404);
});

it("an ingress that the engine lost when it ended is there again as soon as the engine is", async () => {
  const site = [`--label=${label.agent}=${config.agentId}`, "node:24-bookworm-slim", "sleep", "600"];
  const siteContainer = await docker("run", "--detach", ...site);
  stops.push(() => engine.removeContainer(siteContainer));
  const { dockerSocket, cut } = await wayToEngine();
  await started({ dockerSocket });
  const before = await ingress();
  if (!before) throw new Error("There is no ingress");
  // Within the time in which an ingress that does not answer is not judged yet.
  await engine.removeContainer(before.id);
  cut();
  await expect.poll(async () => (await ingress())?.running, { timeout: 12_000 }).toBe(true);
  await answers(config.ingress.port, "unknown.localhost", 404);
});

it("an agent whose engine is away has no room for jobs and names the reason, until the engine is back", async () => {
  const way = await wayToEngine();
  const { connection } = await started({ dockerSocket: way.dockerSocket });
  expect(await connection.next("ready")).toMatchObject({ free: config.slots });
  await connection.next("condition");
  way.close();
  way.cut();
  expect(await connection.next("ready")).toMatchObject({ free: 0, freeCommands: 0, freeShort: 0, slots: 0 });
  expect((await connection.next("condition")).machineProblems[0]).toMatch(
    /^Its Docker engine does not answer/,
  );
  await way.open();
  expect(await connection.next("ready")).toMatchObject({ free: config.slots, slots: config.slots });
  expect((await connection.next("condition")).machineProblems.join()).not.toMatch(/does not answer/);
});

it("an agent notices a site that floods its log, and tells its owner that it is slowed", async () => {
  const { connection } = await started();
  const siteId = newId("site");
  const flood = "for (;;) require('fs').writeSync(1, 'x'.repeat(4095) + '\\n')";
  const labels = [`--label=${label.agent}=${config.agentId}`, `--label=${label.site}=${siteId}`];
  const logs = ["--log-opt=max-size=10m", "--log-opt=max-file=3"];
  const program = ["node:24-bookworm-slim", "node", "-e", flood];
  const id = await docker("run", "--detach", "--cpus=0.5", ...labels, ...logs, ...program);
  stops.push(() => engine.removeContainer(id));
  await expect
    .poll(() => eventsOf(connection, siteId), { timeout: 60_000, interval: 500 })
    .toContainEqual(expect.objectContaining({ kind: "slowed" }));
});

it("an agent whose host is short of disk takes no more into a database that is beyond its pack", async () => {
  const databases = await new DatabaseHost(config.agentId).open();
  stops.push(() => databases.close());
  const spec = databases.specOf("postgresql");
  // Less than an empty one holds.
  spec.limits.diskGb = 0.01;
  await databases.does("database.provision", { database: spec });
  await databases.psql(spec, "CREATE TABLE t (id int)");
  const { connection } = await started({ builds: { ...config.builds, minFreeDiskMb: 1e9 } });
  await expect
    .poll(() => databases.psql(spec, "INSERT INTO t VALUES (1)").catch(String), { timeout: 30_000 })
    .toMatch(/read-only transaction/);
  await expect
    .poll(() => eventsOf(connection, spec.databaseId))
    .toContainEqual(expect.objectContaining({ detail: expect.stringMatching(/it is read-only/) }));
});

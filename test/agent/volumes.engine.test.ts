import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import http from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { networkName, siteContainer, siteLabels, volumeName } from "../../agent/docker/specs.ts";
import { deleteSite } from "../../agent/handlers/delete-site.ts";
import { restartSite } from "../../agent/handlers/restart-site.ts";
import { containersOf, release } from "../../agent/sites/rollout.ts";
import { stopSite } from "../../agent/handlers/stop-site.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import { readdress } from "../../agent/sites/readdress.ts";
import type { Host } from "../../agent/host.ts";
import type { JobRun } from "../../agent/job.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import { QuestionServer } from "../../agent/question-server.ts";
import { DiskUse } from "../../agent/running/disk-use.ts";
import type { Records } from "../../agent/running/records.ts";
import { readSiteLog } from "../../agent/running/site-log.ts";
import { watchSites } from "../../agent/running/watch.ts";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { Answer } from "../../protocol/agent/running.ts";
import type { Id } from "../../protocol/ids.ts";
import { docker, engine, newId } from "../support/engine.ts";
import { get, TestResponder } from "../support/ingress.ts";
import { noneKept, noSources } from "../support/none-kept.ts";
import { noneRequested } from "../support/none-requested.ts";
import { openSiteHost, type SiteHost } from "../support/site-host.ts";
import { databaseExits } from "../../agent/databases/exits.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const node = "node:24-bookworm-slim";

const images: string[] = [];
const sites: Id<"site">[] = [];
const watching = new AbortController();
let own: SiteHost;
let port: number;
let responder: TestResponder;
let records: Records;
let diskUse: DiskUse;
let host: Host;
let isAway = false;

beforeAll(async () => {
  own = await openSiteHost(agentId);
  ({ records } = own);
  ({ port, responder } = own.ingress);
  host = own.startAgent();
  // Of whichever agent is the newest.
  const ingress = { ...host.ingress, current: (siteId: string) => host.ingress.current(siteId) };
  diskUse = new DiskUse({ engine, ingress, records, databases: async () => new Map() });
  const nothing = () => undefined;
  let next = Promise.resolve();
  const follow = (siteId: string, containerId: string) => {
    if (!isAway) next = next.then(() => readdress(host, siteId, containerId)).catch(nothing);
  };
  watchSites(
    {
      engine,
      ingress,
      records,
      agentId,
      out: new Set(),
      onStart: follow,
      onEnd: follow,
      onConnect: nothing,
      onCrash: nothing,
      databaseExits: databaseExits(engine),
      onDatabaseOut: nothing,
    },
    watching.signal,
  );
});

afterAll(async () => {
  watching.abort();
  for (const siteId of sites) await remove(siteId);
  for (const image of images) await engine.removeImage(image);
  await own.close();
  expect(await engine.volumes({ "berth.agent": agentId })).toEqual([]);
  expect(await engine.listContainers({ "berth.agent": agentId })).toEqual([]);
});

const job = (signal = new AbortController().signal): JobRun & { lines: string[] } => {
  const lines: string[] = [];
  const asOfCommands = {
    print: () => true,
    printLast: () => undefined,
    printedUntil: null,
    afterwards: () => undefined,
  };
  const log = (text: string) => void lines.push(text);
  return { jobId: "job", attempt: 1, signal, log, phase: () => undefined, ...asOfCommands, lines };
};

const remove = (siteId: Id<"site">) =>
  deleteSite(host, { siteId, accountId, hostnames: ["a.localhost"] }, job());

/** Says who it is; keeps, lists and shows files of its volume. */
const server = `
const fs = require("fs"), http = require("http");
http.createServer((request, response) => {
  const url = new URL(request.url, "http://a");
  const file = "/data/" + url.searchParams.get("file");
  try {
    if (url.pathname === "/write") fs.writeFileSync(file, "x".repeat(Number(url.searchParams.get("bytes") ?? 1)));
    if (url.pathname === "/read") return response.end(fs.readdirSync("/data").sort().join());
    response.end(process.env.SAYS ?? require("os").hostname());
  } catch (error) { response.writeHead(500).end(error.code); }
}).listen(process.env.PORT, "0.0.0.0");
process.on("SIGTERM", () => process.exit());`;

const data = [{ name: "data", mountPath: "/data" }];

type Site = { siteId: Id<"site">; hostname: string };
function newSite(): Site {
  const siteId = newId("site");
  sites.push(siteId);
  return { siteId, hostname: `s${sites.length}.localhost` };
}

const runOf = ({ siteId, hostname }: Site, changes: Partial<RunSpec> & { code?: string; says?: string }) => {
  const { code = server, says, ...rest } = changes;
  const env = { CODE: code, ...(says !== undefined && { SAYS: says }) };
  return {
    siteId,
    accountId,
    hostnames: [hostname],
    port: 3000,
    startCommand: 'exec node -e "$CODE"',
    healthCheckPath: null,
    startTimeoutSeconds: 20,
    env: Object.entries(env).map(
      ([key, value]) => ({ key, value, scope: "runtime", secret: false }) as const,
    ),
    limits: { memoryMb: 256, cpuMilli: 1000, pids: 256 },
    replicas: 1,
    volumes: [],
    ...rest,
  };
};

async function deploy(site: Site, changes: Parameters<typeof runOf>[1] & { image?: string } = {}) {
  const { image = node, ...run } = changes;
  const run_ = job();
  await release(host, runOf(site, run), newId("deployment"), image, "", run_);
  return run_.lines;
}

const ask = async ({ hostname }: Site, path = "/") => (await get(port, hostname, { path })).text;
const idsOf = async ({ siteId }: Site) => (await containersOf(host, siteId)).map(({ id }) => id).toSorted();
const routedTo = ({ siteId }: Site) => {
  const current = host.ingress.current(siteId);
  return current === null || current === "parked" ? [] : current;
};
/** Whether another process than before has the replica's address, and answers there. */
async function answersAnew(site: Site, before: Target | undefined): Promise<boolean> {
  const now = routedTo(site).find(({ containerId }) => containerId === before?.containerId);
  if (now?.holder === undefined || now.holder === before?.holder) return false;
  return fetch(`http://${now.address}:${now.port}/`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Until only these are left. */
const retired = (site: Site, count: number) =>
  vi.waitUntil(async () => (await idsOf(site)).length === count, { timeout: 20_000, interval: 100 });

async function build(name: string, dockerfile: string): Promise<string> {
  const tag = `berth-test/${agentId}:${name}`;
  const built = execFileSync("docker", ["build", "--quiet", "--tag", tag, "-"], {
    input: dockerfile,
    stdio: ["pipe", "pipe", "ignore"],
  });
  expect(built.toString()).toContain("sha256:");
  images.push(tag);
  return tag;
}

/** Clients that ask one request after the other, until told to stop. */
function load({ hostname }: Site, clients: number) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients });
  const failures: string[] = [];
  const seen = new Map<string, number>();
  let slowestMs = 0;
  const stopping = new AbortController();
  const loops = Array.from({ length: clients }, async () => {
    while (!stopping.signal.aborted) {
      const started = performance.now();
      try {
        const { status, text } = await get(port, hostname, { agent });
        if (status !== 200) failures.push(`${status} ${text.slice(0, 80)}`);
        else seen.set(text, (seen.get(text) ?? 0) + 1);
      } catch (error) {
        failures.push(String(error));
      }
      slowestMs = Math.max(slowestMs, performance.now() - started);
    }
  });
  return {
    seen,
    total: () => [...seen.values()].reduce((sum, one) => sum + one, failures.length),
    async stop() {
      stopping.abort();
      await Promise.all(loops);
      agent.destroy();
      return { failures, slowestMs: Math.round(slowestMs) };
    },
  };
}

describe("a volume", () => {
  it("keeps its data over deployments, failed ones, stops, restarts and the agent's own end; not over the site's", async () => {
    const site = newSite();
    await deploy(site, { volumes: data, says: "one" });
    await ask(site, "/write?file=first");
    await deploy(site, { volumes: data, says: "two" });
    expect([await ask(site), await ask(site, "/read")]).toEqual(["two", "first"]);

    await expect(deploy(site, { volumes: data, code: "process.exit(3)" })).rejects.toThrow(
      /exited with code 3/,
    );
    expect([await ask(site), await ask(site, "/read")]).toEqual(["two", "first"]);

    // Of an agent that was killed, nothing is left but files and containers: here also one that had only begun.
    const begun = runOf(site, { volumes: data, says: "half" });
    const [serving] = routedTo(site);
    await engine.stopContainer(serving?.containerId ?? "", 0);
    await engine.startContainer(
      await engine.createContainer(siteContainer(agentId, begun, "dep_x", node, "")),
    );
    host = own.startAgent();
    await sweep(host);
    // It stays until the control plane has said what it is, but writes to the volume no more.
    const running = async () => (await containersOf(host, site.siteId)).filter((one) => one.running);
    // Docker 26 lists one that has just ended as one that runs.
    await expect.poll(async () => (await running()).map(({ id }) => id)).toEqual([serving?.containerId]);
    expect(routedTo(site)[0]?.containerId).toBe(serving?.containerId);
    await vi.waitUntil(async () => (await ask(site)) === "two", { timeout: 10_000 });
    expect(await ask(site, "/read")).toBe("first");

    await stopSite(host, { siteId: site.siteId, hostnames: [site.hostname] }, job());
    await release(host, runOf(site, { volumes: data, says: "again" }), newId("deployment"), node, "r", job());
    expect([await ask(site), await ask(site, "/read")]).toEqual(["again", "first"]);

    // Unmounted it stays.
    await deploy(site, { says: "without" });
    await retired(site, 1);
    expect(await ask(site, "/read")).toBe("ENOENT");
    await deploy(site, { volumes: data });
    expect(await ask(site, "/read")).toBe("first");

    await remove(site.siteId);
    expect(await engine.volumes(siteLabels(site.siteId))).toEqual([]);
  });

  it("is one writer's at a time: the old version stops first, and serves again when the new one fails", async () => {
    const site = newSite();
    const alone = `
require("fs").mkdirSync("/data/lock");
process.on("SIGTERM", () => { require("fs").rmdirSync("/data/lock"); process.exit(); });
${server.split("process.on")[0]}`;
    const lines = await deploy(site, { volumes: data, code: alone, says: "one" });
    expect(lines.join()).not.toContain("first");
    const stopping = await deploy(site, { volumes: data, code: alone, says: "two" });
    expect(stopping.join()).toContain("Stopping the version in service first");
    expect(await ask(site)).toBe("two");
    const [serving] = routedTo(site);
    // Takes the lock and never listens; where the engine starts it again, the lock is taken.
    const failing = `require("fs").mkdirSync("/data/lock"); process.exit(9)`;
    await expect(deploy(site, { volumes: data, code: failing })).rejects.toThrow(/exited with code [19]/);
    expect(routedTo(site)[0]?.containerId).toBe(serving?.containerId);
    await docker(
      "run",
      "--rm",
      "--volume",
      `${volumeName(site.siteId, "data")}:/data`,
      node,
      "rm",
      "-rf",
      "/data/lock",
    );
    await vi.waitUntil(async () => (await ask(site)) === "two", { timeout: 30_000 });
  });

  it.each([
    ["a user by name, without the folder", "FROM node:24-bookworm-slim\nUSER node\n"],
    ["a user by number, without the folder", "FROM node:24-bookworm-slim\nUSER 1234:5678\n"],
    [
      "the folder and what is in it",
      "FROM node:24-bookworm-slim\nRUN mkdir /data && touch /data/seed && chown -R node:node /data\nUSER node\n",
    ],
  ])("can be written by an image with %s", async (name, dockerfile) => {
    const site = newSite();
    const image = await build(`image${sites.length}`, dockerfile);
    await deploy(site, { volumes: data, image });
    expect(await ask(site, "/write?file=mine")).not.toMatch(/^E[A-Z]+$/);
    const files = name.startsWith("the folder") ? "mine,seed" : "mine";
    expect(await ask(site, "/read")).toBe(files);
    // Nor is it given away twice.
    await deploy(site, { volumes: data, image, says: "next" });
    expect([await ask(site, "/write?file=more"), await ask(site, "/read")]).toEqual([
      "next",
      `mine,more${files.slice(4)}`,
    ]);
  });

  it("is given to the user of an image that has no shell", async () => {
    const site = newSite();
    const image = await build("bare", 'FROM scratch\nUSER 1234:5678\nCMD ["/none"]\n');
    await expect(deploy(site, { volumes: data, image, startCommand: null })).rejects.toThrow();
    const owner = await docker(
      "run",
      "--rm",
      "--volume",
      `${volumeName(site.siteId, "data")}:/data`,
      node,
      "stat",
      "--format",
      "%u:%g",
      "/data",
    );
    expect(owner).toBe("1234:5678");
  });

  it("is a volume of the engine, and nothing of the host is mounted", async () => {
    const site = newSite();
    await deploy(site, { volumes: [...data, { name: "more", mountPath: "/srv/a/b" }], replicas: 2 });
    for (const { containerId } of routedTo(site)) {
      const [found] = JSON.parse(await docker("inspect", containerId)) as {
        Mounts: { Type: string; Name: string; Destination: string }[];
        HostConfig: { Binds: unknown; Privileged: boolean };
      }[];
      expect(found?.HostConfig).toMatchObject({ Binds: null, Privileged: false });
      expect(
        found?.Mounts.map(({ Type, Name, Destination }) => `${Type} ${Name} ${Destination}`).toSorted(),
      ).toEqual([
        `volume ${volumeName(site.siteId, "data")} /data`,
        `volume ${volumeName(site.siteId, "more")} /srv/a/b`,
      ]);
    }
  });

  it("says what it holds, and is removed when nothing uses it", async () => {
    const site = newSite();
    const sent: FromAgent[] = [];
    const questionServer = new QuestionServer({
      requests: noneRequested,
      engine,
      agentId,
      ingress: host.ingress,
      records,
      diskUse,
      kept: noneKept,
      inspectSource: noSources,
      certificate: () => Promise.reject(new Error("no ingress")),
      diskFreeMb: () => Promise.resolve(null),
      machine: () => Promise.reject(new Error("no machine")),
      imageRepository: host.imageRepository,
      inspect: () => Promise.reject(new Error("no database")),
      onStart: () => undefined,
    });
    questionServer.connected((message) => sent.push(message) > 0);
    const asked = async (question: object) => {
      questionServer.receive({
        type: "ask",
        requestId: "r",
        question: { siteId: site.siteId, ...question } as never,
      });
      await vi.waitUntil(() => sent.length > 0, { timeout: 10_000 });
      return (sent.pop() as { answer: object }).answer;
    };
    await deploy(site, { volumes: data, limits: { memoryMb: 256, cpuMilli: 500, pids: 64, diskGb: 1 } });
    await ask(site, `/write?file=big&bytes=${5 * 1024 * 1024}`);
    expect(await asked({ kind: "volumes" })).toEqual({
      kind: "volumes",
      volumes: [{ name: "data", sizeMb: expect.closeTo(5, 1) }],
    });
    const { found } = (await asked({ kind: "disk", ids: [site.siteId] })) as Extract<
      Answer,
      { kind: "disk" }
    >;
    expect(found).toMatchObject([
      { id: site.siteId, volumes: [{ name: "data", sizeMb: expect.closeTo(5, 1) }] },
    ]);
    expect(found[0]?.logMb).toBeGreaterThanOrEqual(0);
    const { totalMb } = await diskUse.of(site.siteId, 0);
    expect(totalMb).toBeGreaterThanOrEqual(5);
    expect(totalMb).toBeLessThan(8);

    expect(await asked({ kind: "removeVolume", name: "data" })).toMatchObject({ kind: "refused" });
    await deploy(site);
    await retired(site, 1);
    expect(await asked({ kind: "removeVolume", name: "data" })).toEqual({ kind: "removeVolume" });
    expect(await engine.volumes(siteLabels(site.siteId))).toEqual([]);
    // Said again, it is gone all the same.
    expect(await asked({ kind: "removeVolume", name: "data" })).toEqual({ kind: "removeVolume" });
    questionServer.disconnected();
  });
});

it.each([
  ["goes on", ""],
  ["is started anew with them, where its memory is in use", "globalThis.held = Buffer.alloc(120 << 20, 1);"],
])("a version whose restart fails with a smaller pack's limits has them too, and %s", async (_, held) => {
  const site = newSite();
  const { siteId } = site;
  const deploymentId = newId("deployment");
  const image = `${host.imageRepository(siteId)}:${deploymentId}`;
  await engine.tagImage((await engine.imageId(node)) ?? "", host.imageRepository(siteId), deploymentId);
  images.push(image);
  const child = `["-e", "Buffer.alloc(120 << 20, 1)"]`;
  const starts = `if (require("child_process").spawnSync(process.execPath, ${child}).status !== 0) process.exit(3);`;
  const run = runOf(site, { code: `${starts}${held}${server}`, says: "still here" });
  await release(host, run, deploymentId, image, "", job());
  const limits = { memoryMb: 100, cpuMilli: 500, pids: 128 };
  const restarted = restartSite(host, { run: { ...run, limits }, deploymentId }, job());
  await expect(restarted).rejects.toThrow(/100 MB of the site's pack/);
  const [one, ...others] = routedTo(site).map(({ containerId }) => containerId);
  expect(others).toEqual([]);
  const given =
    "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}";
  expect(await docker("inspect", "--format", given, one ?? "")).toBe(
    `${100 << 20} ${100 << 20} 500000000 128`,
  );
  if (held === "") expect(await ask(site)).toBe("still here");
});

describe("replicas", () => {
  const site = newSite();
  const hostOf = (id: string) => id.slice(0, 12);

  it("share the pack and the requests, and their lines say whose they are", async () => {
    await deploy(site, { replicas: 3, code: `${server} console.log("up");` });
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) seen.add(await ask(site));
    const ids = routedTo(site).map(({ containerId }) => containerId);
    expect([...seen].toSorted()).toEqual(ids.map(hostOf).toSorted());
    const given = await docker(
      "inspect",
      "--format",
      "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}",
      ...ids,
    );
    expect(new Set(given.split("\n"))).toEqual(new Set([`${85 * 1024 * 1024} 333000000`]));
    const logs = { engine, agentId, records, onStart: () => undefined };
    const lines = await readSiteLog(logs, site.siteId, { tail: 100, after: null, masks: [] });
    expect(lines.map(({ text, replica }) => `${text} ${replica}`).toSorted()).toEqual([
      "up 1",
      "up 2",
      "up 3",
    ]);
  });

  it("are swapped under load without losing a request, also to another number of them", async () => {
    const running = load(site, 6);
    for (const replicas of [2, 4, 1, 2]) {
      const before = running.total();
      await deploy(site, { replicas, says: `version with ${replicas}` });
      expect(await ask(site)).toBe(`version with ${replicas}`);
      await vi.waitUntil(() => running.total() > before + 50, { timeout: 20_000 });
    }
    expect((await running.stop()).failures).toEqual([]);
    await retired(site, 2);
  });

  it("stand in for one that is killed under load, until it is there again", async () => {
    const [first, second] = routedTo(site);
    const running = load(site, 6);
    await vi.waitUntil(() => running.total() > 100, { timeout: 10_000 });
    // Its own end, after which the engine starts it again.
    const { pid } = (await engine.inspectContainer(first?.containerId ?? ""))!;
    process.kill(pid, "SIGKILL");
    let total = running.total();
    await vi.waitUntil(() => running.total() > total + 200, { timeout: 20_000 });
    // Without one that answers, clients wait for three seconds only.
    await vi.waitUntil(() => answersAnew(site, first), { timeout: 20_000 });
    // Somebody's, after which it stays away.
    await docker("kill", second?.containerId ?? "");
    await vi.waitUntil(() => routedTo(site).some(({ down }) => down === true), { timeout: 10_000 });
    total = running.total();
    await vi.waitUntil(() => running.total() > total + 200, { timeout: 20_000 });
    const { failures, slowestMs } = await running.stop();
    // To an address that is gone the ingress dials for two seconds, once.
    expect({ failures, isSlow: slowestMs >= 4000 }).toEqual({ failures: [], isSlow: false });
    await engine.startContainer(second?.containerId ?? "");
    await vi.waitUntil(() => routedTo(site).every(({ down }) => down === undefined), { timeout: 10_000 });
  });

  it("stand in for one that is gone also while the agent is away", async () => {
    isAway = true;
    const [first] = routedTo(site);
    const running = load(site, 6);
    const serving = () => responder.leadsToAll(site.hostname);
    await vi.waitUntil(async () => running.total() > 100 && (await serving()).length === 2, {
      timeout: 10_000,
    });
    await docker("kill", first?.containerId ?? "");
    const total = running.total();
    await vi.waitUntil(() => running.total() > total + 500, { timeout: 10_000 });
    // Who was being answered by it, and then is sent there once more before it is missed, waits too long.
    expect((await running.stop()).failures.length).toBeLessThan(running.total() / 100);
    isAway = false;
    await engine.startContainer(first?.containerId ?? "");
    await vi.waitUntil(async () => (await ask(site)) === "version with 2", { timeout: 10_000 });
  });

  it("all answer or none is sent anybody: one that fails leaves the old version", async () => {
    const before = await idsOf(site);
    // Of two, the one that comes second exits.
    const oneFails = `require("fs").mkdirSync("/data/first");${server}`;
    await expect(deploy(site, { replicas: 2, volumes: data, code: oneFails, says: "new" })).rejects.toThrow(
      /exited/,
    );
    expect(await idsOf(site)).toEqual(before);
    expect(await ask(site)).toBe("version with 2");
  });

  it("are found again by an agent that was killed: what serves runs again, what was half made goes", async () => {
    const before = await idsOf(site);
    for (const replica of [1, 2])
      await engine.createContainer(
        siteContainer(agentId, runOf(site, { replicas: 2 }), "dep_half", node, "", replica),
      );
    await Promise.all(before.map((id) => engine.stopContainer(id, 1)));
    host = own.startAgent();
    await sweep(host);
    expect(await idsOf(site)).toEqual(before);
    await vi.waitUntil(async () => (await ask(site)) === "version with 2", { timeout: 10_000 });
    expect(routedTo(site).every(({ down }) => down === undefined)).toBe(true);
  });

  it("of a job that is done twice are the same ones", async () => {
    const again = newId("deployment");
    const run = runOf(site, { replicas: 2, says: "twice" });
    await release(host, run, again, node, "", job());
    const ids = routedTo(site).map(({ containerId }) => containerId);
    await release(own.startAgent(), run, again, node, "", job());
    expect(routedTo(site).map(({ containerId }) => containerId)).toEqual(ids);
    await retired(site, 2);
    expect(await ask(site)).toBe("twice");
  });

  it("go with the site", async () => {
    await remove(site.siteId);
    expect(await idsOf(site)).toEqual([]);
    await engine.removeNetwork(networkName(accountId));
  });
});

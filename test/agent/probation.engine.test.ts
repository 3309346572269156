import { randomBytes } from "node:crypto";
import http from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { deleteSite } from "../../agent/handlers/delete-site.ts";
import { Stopped } from "../../agent/failure.ts";
import { fencedHost } from "../../agent/fenced-host.ts";
import type { Host } from "../../agent/host.ts";
import { servingIds } from "../../agent/ingress/ingress.ts";
import type { JobRun } from "../../agent/job.ts";
import { containersOf, release } from "../../agent/sites/rollout.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import type { Id } from "../../protocol/ids.ts";
import { engine, newId } from "../support/engine.ts";
import { get } from "../support/ingress.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { openSiteHost, type SiteHost } from "../support/site-host.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");

const sites: Id<"site">[] = [];
let port: number;
let own: SiteHost;
let host: Host;

const newHost = (probationSeconds = 3): Host => own.startAgent({ probationSeconds });

beforeAll(async () => {
  own = await openSiteHost(agentId);
  ({ port } = own.ingress);
  host = newHost();
});

afterAll(async () => {
  for (const siteId of sites)
    await deleteSite(host, { siteId, accountId, hostnames: ["a.localhost"] }, jobRun());
  await own.close();
  expect(await engine.listContainers({ "berth.agent": agentId })).toEqual([]);
});

type Site = { siteId: Id<"site">; hostname: string };
function newSite(): Site {
  const siteId = newId("site");
  sites.push(siteId);
  return { siteId, hostname: `s${sites.length}.localhost` };
}

/** Answers what it says. */
const lasting = (says: string) =>
  `require("http").createServer((q, s) => s.end("${says}")).listen(process.env.PORT);
process.on("SIGTERM", () => process.exit());`;
/** The same, until it exits. */
const dying = (says: string, afterMs: number) =>
  `${lasting(says)} setTimeout(() => { console.log("Cannot find module"); process.exit(1); }, ${afterMs});`;

const runOf = ({ siteId, hostname }: Site, code: string, changes: Partial<RunSpec> = {}): RunSpec =>
  runSpec({
    siteId,
    accountId,
    hostnames: [hostname],
    startCommand: 'exec node -e "$CODE"',
    startTimeoutSeconds: 20,
    env: [{ key: "CODE", value: code, scope: "runtime", secret: false }],
    limits: { memoryMb: 256, cpuMilli: 1000, pids: 256 },
    ...changes,
  });

const deploy = (site: Site, code: string, changes: Partial<RunSpec> = {}, job: JobRun = jobRun()) =>
  release(host, runOf(site, code, changes), newId("deployment"), "node:24-bookworm-slim", "", job);

const ask = async ({ hostname }: Site) => (await get(port, hostname)).text;
const containers = async ({ siteId }: Site) =>
  (await containersOf(host, siteId)).map(({ id }) => id).toSorted();
const serving = ({ siteId }: Site) => servingIds(host.ingress, siteId).toSorted();

/** A client that asks at steady times, whatever became of the request before. */
function load({ hostname }: Site) {
  const failures: string[] = [];
  const seen = new Map<string, number>();
  const pending = new Set<Promise<void>>();
  const agent = new http.Agent({ keepAlive: true });
  const one = async () => {
    try {
      const { status, text } = await get(port, hostname, { agent });
      if (status === 200) seen.set(text, (seen.get(text) ?? 0) + 1);
      else failures.push(`${status} ${text.slice(-200)}`);
    } catch (error) {
      failures.push(String(error));
    }
  };
  const timer = setInterval(() => {
    const asking: Promise<void> = one().finally(() => pending.delete(asking));
    pending.add(asking);
  }, 10);
  return {
    seen,
    async stop() {
      clearInterval(timer);
      await Promise.all(pending);
      agent.destroy();
      return failures;
    },
  };
}

const failing = dying("two", 1000);
const data = [{ name: "data", mountPath: "/data" }];

describe("a version that answers and exits a second later", () => {
  it.each([
    ["", {}],
    [" of two replicas", { replicas: 2 }],
  ])("has failed%s, and the version before serves again without a failed request", async (_, changes) => {
    const site = newSite();
    await deploy(site, lasting("one"), changes);
    const before = serving(site);
    const visitors = load(site);
    await expect(deploy(site, failing, changes)).rejects.toThrow(
      /exited with code 1 after .*Cannot find module/,
    );
    expect(serving(site)).toEqual(before);
    expect(await containers(site)).toEqual(before);
    const twos = visitors.seen.get("two") ?? 0;
    expect(twos).toBeGreaterThan(0);
    const ones = visitors.seen.get("one") ?? 0;
    await vi.waitUntil(() => (visitors.seen.get("one") ?? 0) > ones + 50, { timeout: 20_000 });
    expect(await visitors.stop()).toEqual([]);
    expect(visitors.seen.get("two")).toBe(twos);
  });

  it("has failed, and the version before gets its volume back", async () => {
    const site = newSite();
    await deploy(site, lasting("one"), { volumes: data });
    const before = serving(site);
    await expect(deploy(site, failing, { volumes: data })).rejects.toThrow(/exited with code 1/);
    expect([serving(site), await containers(site)]).toEqual([before, before]);
    await vi.waitUntil(async () => (await ask(site)) === "one", { timeout: 10_000 });
  });

  it("leaves nothing where it was the first, and a stopped site stopped", async () => {
    const site = newSite();
    await expect(deploy(site, failing)).rejects.toThrow(/exited with code 1/);
    expect([host.ingress.current(site.siteId), await containers(site)]).toEqual([null, []]);
    await host.ingress.park(site.siteId, [site.hostname], { reason: "suspended", payUrl: null });
    await expect(deploy(site, failing)).rejects.toThrow(/exited with code 1/);
    expect(host.ingress.current(site.siteId)).toBe("parked");
    expect(await ask(site)).toContain("suspended");
  });
});

it("a version that is cancelled in its probation leaves the version before serving", async () => {
  const site = newSite();
  await deploy(site, lasting("one"));
  const before = serving(site);
  const visitors = load(site);
  const cancelled = new AbortController();
  const deploying = deploy(site, lasting("two"), {}, jobRun({ signal: cancelled.signal }));
  await Promise.race([deploying, vi.waitUntil(() => visitors.seen.has("two"), { timeout: 20_000 })]);
  cancelled.abort(new Stopped("cancelled", "Cancelled."));
  await expect(deploying).rejects.toThrow();
  expect([serving(site), await containers(site)]).toEqual([before, before]);
  expect(await visitors.stop()).toEqual([]);
});

describe.each([
  ["", {}],
  [" whose volume changed hands", { volumes: data }],
])("of an agent that is killed in the probation of a version%s, the next one", (_, changes) => {
  async function killedInProbation(code: string) {
    const site = newSite();
    await deploy(site, lasting("one"), changes);
    const before = serving(site);
    const killed = new AbortController();
    const run = runOf(site, code, changes);
    const inProbation = Promise.withResolvers<void>();
    const again: [RunSpec, string, string, string, JobRun] = [
      run,
      newId("deployment"),
      "node:24-bookworm-slim",
      "",
      jobRun({ log: (text) => text.startsWith("It answers and serves") && inProbation.resolve() }),
    ];
    void release(fencedHost(newHost(60), killed.signal), ...again).catch(() => undefined);
    await inProbation.promise;
    expect(await ask(site)).toBe("two");
    killed.abort(new Error("killed"));
    host = newHost();
    await sweep(host);
    expect(await ask(site)).toBe("two");
    return { site, before, again };
  }

  it("goes on with it", async () => {
    const { site, before, again } = await killedInProbation(lasting("two"));
    const made = serving(site);
    await release(host, ...again);
    await host.retired();
    expect([serving(site), await containers(site)]).toEqual([made, made]);
    expect(made).not.toEqual(before);
    expect(await ask(site)).toBe("two");
  });

  it("takes the version before into service again where it exits", async () => {
    const { site, before, again } = await killedInProbation(dying("two", 2500));
    await expect(release(host, ...again)).rejects.toThrow(/exited with code 1/);
    expect([serving(site), await containers(site)]).toEqual([before, before]);
    await vi.waitUntil(async () => (await ask(site)) === "one", { timeout: 10_000 });
  });
});

it("an agent that stops in a probation leaves both versions to the next one", async () => {
  const site = newSite();
  await deploy(site, lasting("one"));
  const stopping = new AbortController();
  const deploying = deploy(site, lasting("two"), {}, jobRun({ signal: stopping.signal }));
  await vi.waitUntil(async () => (await ask(site)) === "two", { timeout: 20_000 });
  stopping.abort(new Stopped("shutdown", "The agent is stopping."));
  await expect(deploying).rejects.toThrow();
  expect(await ask(site)).toBe("two");
  expect(await containers(site)).toHaveLength(2);
});

it("what passed its probation is not put on it again: its start takes no longer", async () => {
  const site = newSite();
  const args = [
    runOf(site, lasting("one")),
    newId("deployment"),
    "node:24-bookworm-slim",
    "",
    jobRun(),
  ] as const;
  await release(host, ...args);
  host = newHost(60);
  await release(host, ...args);
  host = newHost();
  expect(await ask(site)).toBe("one");
});

describe("an app that speaks no HTTP", () => {
  it.each([
    ["says something of its own", `socket.end("SSH-2.0-x\\r\\n")`],
    ["closes", "socket.end()"],
    ["waits for another protocol", ""],
  ])("is live by its connections: one that %s", async (_, does) => {
    const site = newSite();
    const code = `require("net").createServer((socket) => { socket.resume().on("error", () => {}); ${does} }).listen(process.env.PORT, "0.0.0.0");`;
    await deploy(site, code);
    expect(serving(site)).toHaveLength(1);
  });
});

describe("an app that listens elsewhere is told within ten seconds", () => {
  const listening = (where: string) =>
    `require("http").createServer((q, s) => s.end("x")).listen(${where}); setInterval(() => {}, 1000);`;
  it.each([
    ["another port", listening(`3001, "0.0.0.0"`), /listens on 3001: set the site's port to it/],
    [
      "127.0.0.1",
      listening(`3000, "127.0.0.1"`),
      /listens on 127\.0\.0\.1:3000 only: let it listen on 0\.0\.0\.0/,
    ],
    [
      "a development server's port",
      listening(`5173, "127.0.0.1"`),
      /^The start command runs a development server \(Vite\), which listens on 127\.0\.0\.1:5173: let it start what serves the built site/,
    ],
  ])("%s", async (_, code, told) => {
    const site = newSite();
    const before = performance.now();
    await expect(deploy(site, code, { startTimeoutSeconds: 120 })).rejects.toThrow(told);
    expect(performance.now() - before).toBeLessThan(60_000);
  });

  it("but not while it is still at work, or begins other programs", async () => {
    const site = newSite();
    const code = `
const http = require("http"), { execFileSync } = require("child_process");
http.createServer((q, s) => s.end("helper")).listen(9000, "127.0.0.1");
let left = 8;
const timer = setInterval(() => {
  execFileSync("sleep", ["0.6"]);
  if (--left > 0) return;
  clearInterval(timer);
  http.createServer((q, s) => s.end("late")).listen(3000, "0.0.0.0");
}, 50);`;
    await deploy(site, code);
    expect(await ask(site)).toBe("late");
  });
});

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { api, gitHost, launch, remove, Repository, request, stateDirectory } from "../test/e2e/service.ts";
import { freePort } from "../scripts/lib/state.ts";
import { addressOf, build, docker, siteDockerfile } from "./by-hand.ts";
import { median } from "./median.ts";

/**
 * The time from requesting a deployment to the first 200 of the new version, against the same steps by hand with git
 * and the Docker CLI, with the same repository, in the same run and in alternation. By hand in two ways: *beside*,
 * where the new container is requested at its own address while the old one keeps serving; and *in place*, for users
 * who keep their address: the old container is removed before the new one can have its port. Ratios are meaningful;
 * milliseconds are this machine's.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);

/** The engine keeps what earlier runs built, of which no other is to take anything. */
const runName = `bench-${Date.now()}`;

/** Answers with its container's name and its version, which distinguishes a new container from the old one. */
const files = (version: number) => ({
  Dockerfile: siteDockerfile,
  "package.json": `{ "name": "${runName}", "private": true }\n`,
  "server.js": `require("node:http").createServer((q, s) => s.end(require("node:os").hostname() + " ${runName} ${version}")).listen(process.env.PORT || 3000);\n`,
});

let version = 0;
const repository = new Repository(files(version));

/** Often enough to see a swap, rarely enough not to take CPU time from the measured build. */
const askEveryMs = 10;

async function firstAnswer(url: string): Promise<void> {
  for (;;) {
    const answer = await request(url).catch(() => undefined);
    if (answer?.status === 200) return;
    await delay(askEveryMs);
  }
}

type Watched = { asked: number; failed: number; longestGapMs: number };

/**
 * A client that sends requests at a steady rate, whatever became of earlier ones, and reports when a new container
 * answers.
 */
function watch(url: string) {
  const seen: Watched = { asked: 0, failed: 0, longestGapMs: 0 };
  const pending = new Set<Promise<void>>();
  let lastMs = performance.now();
  let known: string | undefined;
  let changed: (() => void) | undefined;
  const ask = async () => {
    const answer = await request(url).catch(() => undefined);
    if (answer?.status !== 200) return void seen.failed++;
    seen.longestGapMs = Math.max(seen.longestGapMs, performance.now() - lastMs);
    lastMs = performance.now();
    if (known !== undefined && answer.text !== known) changed?.();
    known ??= answer.text;
  };
  const timer = setInterval(() => {
    seen.asked++;
    const asking: Promise<void> = ask().finally(() => pending.delete(asking));
    pending.add(asking);
  }, askEveryMs);
  return {
    change: new Promise<void>((resolve) => (changed = resolve)),
    async stop(): Promise<Watched> {
      clearInterval(timer);
      await Promise.all(pending);
      return seen;
    },
  };
}

const images = new Set<string>();

/** The first steps of both ways by hand. */
const buildByHand = async (): Promise<void> =>
  void images.add(await build(repository.address, "--tag", "berth-bench-hand"));

const start = (label: string, ...args: string[]) =>
  docker("run", "--detach", "--label", label, "--env", "PORT=3000", ...args, "berth-bench-hand");
const running = (label: string) => docker("ps", "--quiet", "--filter", `label=${label}`);

/** The old container is removed afterwards, outside the measured time. */
async function beside(): Promise<Measured> {
  const old = await running("bench.beside");
  const started = performance.now();
  await buildByHand();
  const id = await start("bench.beside");
  await firstAnswer(`http://${await addressOf(id)}:3000/`);
  const tookMs = performance.now() - started;
  if (old) await docker("rm", "--force", old);
  return { tookMs, watched: null };
}

const port = await freePort();
async function inPlace(): Promise<Measured> {
  const old = await running("bench.in-place");
  const client = watch(`http://127.0.0.1:${port}/`);
  const started = performance.now();
  await buildByHand();
  if (old) await docker("rm", "--force", old);
  await start("bench.in-place", "--publish", `127.0.0.1:${port}:3000`);
  if (old) await client.change;
  const tookMs = performance.now() - started;
  return { tookMs, watched: await client.stop() };
}

type Ask = () => Promise<{ body: { deploymentId: string } }>;

async function byBerth(siteId: string, url: string, ask: Ask): Promise<Measured> {
  const client = watch(url);
  await firstAnswer(url);
  const started = performance.now();
  const { body } = await ask();
  await client.change;
  const tookMs = performance.now() - started;
  // Waits until the old container is gone, so that no measurement overlaps with another one's clean-up.
  const containers = async () =>
    (await docker("ps", "--all", "--quiet", "--filter", `label=berth.site=${siteId}`)).split("\n").length;
  for (;;) {
    const { body: deployment } = await api<{ status: string; error: string | null }>(
      "GET",
      `/deployments/${body.deploymentId}`,
    );
    if (deployment.error !== null) throw new Error(deployment.error);
    if (deployment.status === "LIVE" && (await containers()) === 1)
      return { tookMs, watched: await client.stop() };
    await delay(500);
  }
}

type Measured = { tookMs: number; watched: Watched | null };

type Row = { name: string; beside: Measured[]; inPlace: Measured[]; berth: Measured[] };
const rows: Row[] = [];
async function compare(
  name: string,
  times: number,
  prepare: () => void,
  berth: () => Promise<Measured>,
): Promise<void> {
  const row: Row = { name, beside: [], inPlace: [], berth: [] };
  for (let round = 0; round < times; round++) {
    prepare();
    row.beside.push(await beside());
    // Each way by hand would otherwise use the other's build cache.
    prepare();
    row.inPlace.push(await inPlace());
    row.berth.push(await berth());
  }
  rows.push(row);
}

const site = await launch({ githubUrl: repository.address });
if (site.status !== "RUNNING")
  throw new Error(`The benchmark's site is ${site.status}: ${site.latestDeployment?.error}`);
await beside();
await inPlace();

const change = () => repository.commit(files(++version), `Version ${version}`);
// A new dependency layer for both: only the base image is cached.
const changeAll = () => {
  version++;
  repository.commit(
    { ...files(version), "package.json": `{ "name": "${runName}-${version}", "private": true }\n` },
    `Dependencies ${version}`,
  );
};
const path = `/sites/${site.id}`;
const deploy: Ask = () => api("PATCH", path, { action: "deploy" });
const rollback: Ask = () => api("POST", `${path}/rollback`);
let setting = 0;
const changeEnv: Ask = async () => {
  await api("PATCH", path, {
    envVariables: [{ key: "SETTING", value: String(++setting), scope: "runtime" }],
  });
  return deploy();
};
const berth = (ask: Ask) => () => byBerth(site.id, site.url, ask);
const nothing = () => undefined;
await compare("dependencies changed", rounds, changeAll, berth(deploy));
await compare("one line changed", rounds, change, berth(deploy));
await compare("unchanged", rounds, nothing, berth(deploy));
// By hand there is no shorter way than an unchanged redeploy.
await compare("a runtime variable changed", rounds, nothing, berth(changeEnv));
await compare("rollback", rounds, nothing, berth(rollback));

await delay(5000);
const agent = (
  JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<string, number>
)["agent"];
const residentKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent}/status`, "utf8"))?.[1]);

const tookMs = (measured: Measured[]) => median(measured.map((one) => one.tookMs));
const gapMs = (measured: Measured[]) =>
  Math.max(...measured.map(({ watched }) => watched?.longestGapMs ?? 0));
const total = (of: (row: Row) => Measured[], what: "asked" | "failed") =>
  rows.flatMap(of).reduce((sum, { watched }) => sum + (watched?.[what] ?? 0), 0);

console.log(`
Time to the first 200 of the new version, median of ${rounds} (${gitHost}); the gap is the longest time without a 200 in any
round, seen by a client that asks every ${askEveryMs} ms

| deployment | beside, ms | in place, ms | Berth, ms | Berth/beside | Berth/in place | gap in place, ms | gap Berth, ms |
|---|---|---|---|---|---|---|---|`);
for (const { name, beside, inPlace, berth } of rows) {
  const [besideMs, inPlaceMs, berthMs] = [tookMs(beside), tookMs(inPlace), tookMs(berth)];
  const ratios = [berthMs / besideMs, berthMs / inPlaceMs].map((ratio) => ratio.toFixed(2));
  const cells = [besideMs, inPlaceMs, berthMs].map((ms) => ms.toFixed(0));
  const gaps = [gapMs(inPlace), gapMs(berth)].map((ms) => ms.toFixed(0));
  console.log(`| ${[name, ...cells, ...ratios, ...gaps].join(" | ")} |`);
}
console.log(`
Requests without a 200: in place ${total((row) => row.inPlace, "failed")} of ${total((row) => row.inPlace, "asked")}, Berth ${total((row) => row.berth, "failed")} of ${total((row) => row.berth, "asked")}
Idle agent: ${(residentKb / 1024).toFixed(0)} MB resident`);

for (const label of ["bench.beside", "bench.in-place"]) await docker("rm", "--force", await running(label));
for (const image of images) execFileSync("docker", ["rmi", "--force", image], { stdio: "ignore" });
await remove(site.id);
repository.remove();

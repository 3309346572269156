import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { api, gitHost, launch, remove, Repository, request, stateDirectory } from "../test/e2e/service.ts";

/**
 * Time from asking for a deployment to the first 200 of the new version, against the same steps by hand with git and the
 * Docker CLI, of the same repository, in the same run and by turns. Ratios are what counts; milliseconds are this machine's.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);

/** Answers its own container's name and its version, so that a new container is told from the old one. */
const files = (version: number) => ({
  Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY package.json .\nRUN node -e "console.log('dependencies')"\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
  "package.json": `{ "name": "bench", "private": true }\n`,
  "server.js": `require("node:http").createServer((q, s) => s.end(require("node:os").hostname() + " ${version}")).listen(process.env.PORT || 3000);\n`,
});

let version = 0;
const repository = new Repository(files(version));

async function firstAnswer(url: string, isNew: (text: string) => boolean): Promise<void> {
  for (;;) {
    const answer = await request(url).catch(() => undefined);
    if (answer?.status === 200 && isNew(answer.text)) return;
    // Seldom enough not to take the processor from the build that is measured.
    await delay(10);
  }
}

const docker = (...args: string[]) =>
  execFileSync("docker", args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, DOCKER_BUILDKIT: "0" },
  }).trim();

const images = new Set<string>();

/** `git clone --depth 1 && docker build && docker run`, then ask until it answers; the old one is removed afterwards. */
async function byHand(): Promise<number> {
  const old = docker("ps", "--quiet", "--filter", "label=bench.hand");
  const started = performance.now();
  const directory = mkdtempSync(join(tmpdir(), "bench-hand-"));
  execFileSync("git", ["clone", "--quiet", "--depth", "1", `http://${repository.address}`, directory]);
  images.add(docker("build", "--quiet", "--tag", "berth-bench-hand", directory));
  const id = docker("run", "--detach", "--label", "bench.hand", "--env", "PORT=3000", "berth-bench-hand");
  const address = docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", id);
  await firstAnswer(`http://${address}:3000/`, () => true);
  const took = performance.now() - started;
  if (old) docker("rm", "--force", old);
  rmSync(directory, { recursive: true });
  return took;
}

type Ask = () => Promise<{ body: { deploymentId: string } }>;

async function byBerth(siteId: string, url: string, ask: Ask): Promise<number> {
  const before = (await request(url)).text;
  const started = performance.now();
  const { body } = await ask();
  await firstAnswer(url, (text) => text !== before);
  const took = performance.now() - started;
  // Neither way is measured while the other's old container is still being removed.
  const containers = () =>
    docker("ps", "--all", "--quiet", "--filter", `label=berth.site=${siteId}`).split("\n").length;
  for (;;) {
    const { body: deployment } = await api<{ status: string; error: string | null }>(
      "GET",
      `/deployments/${body.deploymentId}`,
    );
    if (deployment.error !== null) throw new Error(deployment.error);
    if (deployment.status === "LIVE" && containers() === 1) return took;
    await delay(500);
  }
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const rows: [string, number[], number[]][] = [];
async function compare(
  name: string,
  times: number,
  prepare: () => void,
  hand: () => Promise<number>,
  berth: () => Promise<number>,
): Promise<void> {
  const [byHandMs, byBerthMs]: [number[], number[]] = [[], []];
  for (let round = 0; round < times; round++) {
    prepare();
    byHandMs.push(await hand());
    byBerthMs.push(await berth());
  }
  rows.push([name, byHandMs, byBerthMs]);
}

const site = await launch({ githubUrl: repository.address });
if (site.status !== "RUNNING")
  throw new Error(`The benchmark's site is ${site.status}: ${site.latestDeployment?.error}`);
await byHand();

const change = () => repository.commit(files(++version), `Version ${version}`);
// A new dependency layer for both: of either cache only the base image helps.
const changeAll = () => {
  version++;
  repository.commit(
    { ...files(version), "package.json": `{ "name": "bench-${version}", "private": true }\n` },
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
await compare("dependencies changed", rounds, changeAll, byHand, berth(deploy));
await compare("one line changed", rounds, change, byHand, berth(deploy));
await compare("unchanged", rounds, nothing, byHand, berth(deploy));
// By hand there is no shorter way than an unchanged redeploy.
await compare("a runtime variable changed", rounds, nothing, byHand, berth(changeEnv));
await compare("rollback", rounds, nothing, byHand, berth(rollback));

await delay(5000);
const agent = (
  JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<string, number>
)["agent"];
const residentKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent}/status`, "utf8"))?.[1]);

console.log(`\nTime to the first 200 of the new version, median of ${rounds} (${gitHost})\n`);
console.log("| deployment | by hand, ms | Berth, ms | ratio |\n|---|---|---|---|");
for (const [name, hand, berth] of rows)
  console.log(
    `| ${name} | ${median(hand).toFixed(0)} | ${median(berth).toFixed(0)} | ${(median(berth) / median(hand)).toFixed(2)} |`,
  );
console.log(`\nIdle agent: ${(residentKb / 1024).toFixed(0)} MB resident`);

docker("rm", "--force", docker("ps", "--quiet", "--filter", "label=bench.hand"));
for (const image of images) docker("rmi", "--force", image);
await remove(site.id);
repository.remove();

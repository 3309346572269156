import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { api, createSite, pay, remove, Repository, request, settled } from "../test/e2e/service.ts";
import { median } from "./workerd.ts";

/**
 * Ten first deployments asked for at once, until the last of ten sites answers, against the same by hand: ten times `git clone
 * --depth 1`, `docker build` and `docker run`, all begun at once. By turns, with repositories that nobody has built before.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const count = 10;
const askEveryMs = 50;
const label = "bench.ten-at-once";

let made = 0;
const repositories = () =>
  Array.from({ length: count }, () => {
    const name = `bench-${++made}-${Date.now()}`;
    return new Repository({
      Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY package.json .\nRUN node -e "console.log('dependencies')"\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
      "package.json": `{ "name": "${name}", "private": true }\n`,
      "server.js": `require("node:http").createServer((q, s) => s.end("${name}")).listen(process.env.PORT || 3000);\n`,
    });
  });

const environment = { ...process.env, DOCKER_BUILDKIT: "0" };
const run = async (program: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(program, args, { env: environment, maxBuffer: 1e8 })).stdout.trim();

async function answers(url: string): Promise<void> {
  while ((await request(url).catch(() => undefined))?.status !== 200) await delay(askEveryMs);
}

async function byHand(): Promise<number> {
  const sources = repositories();
  const started = performance.now();
  const ids = await Promise.all(
    sources.map(async ({ address }) => {
      const directory = mkdtempSync(join(tmpdir(), "bench-hand-"));
      await run("git", "clone", "--quiet", "--depth", "1", `http://${address}`, directory);
      const image = await run("docker", "build", "--quiet", directory);
      rmSync(directory, { recursive: true });
      const id = await run("docker", "run", "--detach", "--label", label, "--env", "PORT=3000", image);
      const address_ = await run("docker", "inspect", "--format", "{{.NetworkSettings.IPAddress}}", id);
      await answers(`http://${address_}:3000/`);
      return { id, image };
    }),
  );
  const tookMs = performance.now() - started;
  for (const { id, image } of ids) {
    await run("docker", "rm", "--force", id);
    await run("docker", "rmi", "--force", image);
  }
  for (const source of sources) source.remove();
  return tookMs;
}

async function byBerth(): Promise<number> {
  const sources = repositories();
  const sites: { siteId: string; invoiceToken: string; url: string }[] = [];
  for (const { address } of sources) {
    const { siteId, invoiceToken } = await createSite({ githubUrl: address });
    const { body } = await api<{ url: string }>("GET", `/sites/${siteId}`);
    sites.push({ siteId, invoiceToken, url: body.url });
  }
  const started = performance.now();
  const ends = await Promise.all(
    sites.map(async ({ siteId, invoiceToken, url }) => {
      await pay(invoiceToken);
      const end = settled(siteId).then(({ status }) => {
        if (status !== "RUNNING") throw new Error(`A site of the benchmark is ${status}.`);
      });
      // A site that fails never answers.
      await Promise.race([answers(url), end.then(() => answers(url))]);
      return { end };
    }),
  );
  const tookMs = performance.now() - started;
  await Promise.all(ends.map(({ end }) => end));
  for (const { siteId } of sites) await remove(siteId);
  for (const source of sources) source.remove();
  return tookMs;
}

const [hand, berth]: [number[], number[]] = [[], []];
for (let round = 0; round < rounds; round++)
  for (const [times, way] of round % 2 === 0
    ? ([
        [hand, byHand],
        [berth, byBerth],
      ] as const)
    : ([
        [berth, byBerth],
        [hand, byHand],
      ] as const))
    times.push(await way());

const ratios = hand.map((ms, at) => (berth[at] ?? Number.NaN) / ms);
console.log(`
${count} first deployments at once, until the last answers, medians of ${rounds}

| by hand, ms | Berth, ms | ratio by pairs | range |
|---|---|---|---|
| ${median(hand).toFixed(0)} | ${median(berth).toFixed(0)} | ${median(ratios).toFixed(2)} | ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} |`);

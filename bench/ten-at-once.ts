import { setTimeout as delay } from "node:timers/promises";
import { api, createSite, pay, remove, Repository, request, settled } from "../test/e2e/service.ts";
import { addressOf, build, docker, siteDockerfile } from "./by-hand.ts";
import { median } from "./median.ts";

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
      Dockerfile: siteDockerfile,
      "package.json": `{ "name": "${name}", "private": true }\n`,
      "server.js": `require("node:http").createServer((q, s) => s.end("${name}")).listen(process.env.PORT || 3000);\n`,
    });
  });

async function answers(url: string): Promise<void> {
  while ((await request(url).catch(() => undefined))?.status !== 200) await delay(askEveryMs);
}

async function byHand(): Promise<number> {
  const sources = repositories();
  const started = performance.now();
  const ids = await Promise.all(
    sources.map(async ({ address }) => {
      const image = await build(address);
      return { id: await docker("run", "--detach", "--label", label, "--env", "PORT=3000", image), image };
    }),
  );
  for (const { id } of ids) await answers(`http://${await addressOf(id)}:3000/`);
  const tookMs = performance.now() - started;
  for (const { id, image } of ids) {
    await docker("rm", "--force", id);
    await docker("rmi", "--force", image);
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
  await Promise.all(sites.map(({ invoiceToken }) => pay(invoiceToken)));
  // One after the other: ten people who reload ten pages would be measured, too.
  const ends: Promise<void>[] = [];
  for (const { siteId, url } of sites) {
    const end = settled(siteId).then(({ status }) => {
      if (status !== "RUNNING") throw new Error(`A site of the benchmark is ${status}.`);
    });
    ends.push(end);
    // A site that fails never answers.
    await Promise.race([answers(url), end.then(() => answers(url))]);
  }
  const tookMs = performance.now() - started;
  await Promise.all(ends);
  for (const { siteId } of sites) await remove(siteId);
  for (const source of sources) source.remove();
  return tookMs;
}

const [hand, berth]: [number[], number[]] = [[], []];
for (let round = 0; round < rounds; round++) {
  const turns: [number[], () => Promise<number>][] = [
    [hand, byHand],
    [berth, byBerth],
  ];
  for (const [times, way] of round % 2 === 0 ? turns : turns.toReversed()) times.push(await way());
}

const ratios = hand.map((ms, at) => (berth[at] ?? Number.NaN) / ms);
console.log(`
${count} first deployments at once, until the last answers, medians of ${rounds}

| by hand, ms | Berth, ms | ratio by pairs | range |
|---|---|---|---|
| ${median(hand).toFixed(0)} | ${median(berth).toFixed(0)} | ${median(ratios).toFixed(2)} | ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} |`);

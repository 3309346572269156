import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { api, createSite, ended, pay, remove, Repository, request, settled } from "../test/e2e/service.ts";

/**
 * The time until an Express app with 72 packages answers, once built by the Dockerfile that Berth generates and once by one
 * written by hand after Docker's guide for Node (bench/express/Dockerfile). Both are deployed by the same service and take turns,
 * so that only the Dockerfile differs. A first deployment is that of a new site, whose build cache is empty; it counts from
 * its payment. A redeployment has one line of source changed, and counts from its request.
 */
const firstRounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const changesPerSite = 3;
const askEveryMs = 10;

const folder = join(import.meta.dirname, "express");
const shared = Object.fromEntries(
  readdirSync(folder)
    .filter((name) => name !== "Dockerfile")
    .map((name) => [name, readFileSync(join(folder, name), "utf8")]),
);
const byHand = {
  ...shared,
  Dockerfile: readFileSync(join(folder, "Dockerfile"), "utf8"),
  ".dockerignore": ".git\nnode_modules\nDockerfile\n",
};
const withVersion = (version: number) => ({ "version.json": `${version}\n` });

async function answers(url: string, version: number): Promise<void> {
  const wanted = `version ${version}`;
  for (;;) {
    const answer = await request(url).catch(() => undefined);
    if (answer?.status === 200 && answer.text === wanted) return;
    await delay(askEveryMs);
  }
}

type Times = { firstMs: number; changedMs: number[] };

async function deploy(files: Record<string, string>): Promise<Times> {
  let version = 1;
  const repository = new Repository({ ...files, ...withVersion(version) });
  const { siteId, invoiceToken } = await createSite({ githubUrl: repository.address });
  const { body } = await api<{ url: string }>("GET", `/sites/${siteId}`);
  const paid = performance.now();
  await pay(invoiceToken);
  await Promise.race([answers(body.url, version), failure(settled(siteId))]);
  const firstMs = performance.now() - paid;
  await settled(siteId);
  const changedMs: number[] = [];
  for (let change = 0; change < changesPerSite; change++) {
    repository.commit(withVersion(++version), `Version ${version}`);
    const started = performance.now();
    const { body: asked } = await api<{ deploymentId: string }>("PATCH", `/sites/${siteId}`, {
      action: "deploy",
    });
    const end = ended(asked.deploymentId);
    await Promise.race([answers(body.url, version), failure(end)]);
    changedMs.push(performance.now() - started);
    await end;
  }
  await remove(siteId);
  repository.remove();
  return { firstMs, changedMs };
}

/** Never fulfilled: it only ends a wait for an answer that cannot come. */
async function failure(end: Promise<{ status: string }>): Promise<never> {
  const { status } = await end;
  if (status === "FAILED")
    throw new Error(`A deployment of the benchmark failed: ${JSON.stringify(await end)}`);
  return new Promise(() => undefined);
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

// What a host makes once of a base image is there before the first measurement, as on a host with any other Node site.
await deploy(shared);
const generated: Times[] = [];
const hand: Times[] = [];
for (let round = 0; round < firstRounds; round++) {
  const turns: [Times[], Record<string, string>][] = [
    [generated, shared],
    [hand, byHand],
  ];
  for (const [times, files] of round % 2 === 0 ? turns : turns.toReversed()) times.push(await deploy(files));
}

console.log(`
Time to the first 200 of an Express app with 72 packages, medians of ${firstRounds} first deployments and ${firstRounds * changesPerSite} with one line changed

| deployment | Dockerfile by hand, ms | generated, ms | ratio |
|---|---|---|---|`);
const row = (name: string, of: (times: Times) => number[]) => {
  const [handMs, generatedMs] = [median(hand.flatMap(of)), median(generated.flatMap(of))];
  console.log(
    `| ${name} | ${handMs.toFixed(0)} | ${generatedMs.toFixed(0)} | ${(generatedMs / handMs).toFixed(2)} |`,
  );
};
row("first", ({ firstMs }) => [firstMs]);
row("one line changed", ({ changedMs }) => changedMs);

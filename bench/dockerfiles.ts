import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { api, createSite, ended, pay, remove, Repository, request, settled } from "../test/e2e/service.ts";
import { caSecretId, trustCa } from "../agent/image-build/trust-ca.ts";
import { freePort } from "../scripts/lib/state.ts";
import { build, docker } from "./by-hand.ts";
import { median } from "./median.ts";

/**
 * The time until an app answers, once built by the Dockerfile that Berth generates and once by one written by hand: Express with
 * 72 packages after Docker's guide for Node, and React built by Vite, served by Caddy. Both are deployed by the same service, so that
 * only the Dockerfile differs; and the second is built and run with git and the Docker CLI, where the new container takes the old one's
 * port. All take turns. A first deployment is that of a new site, whose build cache is empty; it counts from its payment. A redeployment
 * has one line of source changed, and counts from its request.
 */
const firstRounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const changesPerSite = 3;
/** Seldom enough that a site which is asked all the time it is built does not slow that down. */
const askEveryMs = 50;

type Files = Record<string, string>;
type App = { name: string; folder: string; withVersion: (version: number) => Files };
const apps: App[] = [
  {
    name: "Express with 72 packages",
    folder: "express",
    withVersion: (version) => ({ "version.json": `${version}\n` }),
  },
  {
    name: "React built by Vite",
    folder: "vite-react",
    withVersion: (version) => ({
      "index.html": `<!doctype html><title>version ${version}</title><div id="root"></div><script type="module" src="/src/main.jsx"></script>\n`,
    }),
  },
];

async function answers(url: string, version: number): Promise<void> {
  const wanted = new RegExp(`\\bversion ${version}\\b`);
  for (;;) {
    const answer = await request(url).catch(() => undefined);
    if (answer?.status === 200 && wanted.test(answer.text)) return;
    await delay(askEveryMs);
  }
}

type Times = { firstMs: number; changedMs: number[] };

async function deploy({ withVersion }: App, files: Files): Promise<Times> {
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

/** Builds trust what the machine does, as the host's do. */
const certificates = process.env["NODE_EXTRA_CA_CERTS"];

/** `git clone`, `docker build`, `docker rm` of the old container, `docker run`. */
async function inPlace({ withVersion }: App, files: Files): Promise<Times> {
  let version = 1;
  const round = Date.now();
  // With a cache of its own, as a new site has one, and none of the steps that an earlier round has left.
  const Dockerfile =
    files["Dockerfile"]
      ?.replace("type=cache,", `type=cache,id=bench-${round},`)
      .replace("\nCOPY", `\nENV BENCH_ROUND=${round}\nCOPY`) ?? "";
  const repository = new Repository({
    ...files,
    ...withVersion(version),
    Dockerfile: certificates === undefined ? Dockerfile : trustCa(Dockerfile),
  });
  const port = await freePort();
  const images: string[] = [];
  let container: string | undefined;
  const take = async (): Promise<number> => {
    const started = performance.now();
    const secret = certificates === undefined ? [] : ["--secret", `id=${caSecretId},src=${certificates}`];
    const image = await build(repository.address, ...secret);
    if (container) await docker("rm", "--force", container);
    const published = ["--publish", `127.0.0.1:${port}:3000`, "--env", "PORT=3000"];
    container = await docker("run", "--detach", ...published, image);
    await answers(`http://127.0.0.1:${port}/`, version);
    images.push(image);
    return performance.now() - started;
  };
  const firstMs = await take();
  const changedMs: number[] = [];
  for (let change = 0; change < changesPerSite; change++) {
    repository.commit(withVersion(++version), `Version ${version}`);
    changedMs.push(await take());
  }
  if (container) await docker("rm", "--force", container);
  await docker("rmi", "--force", ...images);
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

for (const app of apps) {
  const folder = join(import.meta.dirname, app.folder);
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const all: Files = Object.fromEntries(
    entries.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [relative(folder, path), readFileSync(path, "utf8")];
    }),
  );
  const { Dockerfile = "", ...shared } = all;
  const byHand = { ...shared, Dockerfile, ".dockerignore": ".git\nnode_modules\nDockerfile\n" };

  // What a host makes once of a base image is there before the first measurement, as on a host with any other such site.
  await deploy(app, shared);
  const [generated, hand, placed]: [Times[], Times[], Times[]] = [[], [], []];
  for (let round = 0; round < firstRounds; round++) {
    const turns: [Times[], () => Promise<Times>][] = [
      [generated, () => deploy(app, shared)],
      [hand, () => deploy(app, byHand)],
      [placed, () => inPlace(app, byHand)],
    ];
    for (const [times, take] of round % 2 === 0 ? turns : turns.toReversed()) times.push(await take());
  }

  console.log(`
Time to the first 200 of ${app.name}, medians of ${firstRounds} first deployments and ${firstRounds * changesPerSite} with one line changed

| deployment | by hand in place, ms | Berth, Dockerfile by hand, ms | Berth, generated, ms | generated / by hand in place | / Dockerfile by hand |
|---|---|---|---|---|---|`);
  const row = (name: string, of: (times: Times) => number[]) => {
    const medianMs = (times: Times[]) => median(times.flatMap(of));
    const [placedMs, handMs, generatedMs] = [medianMs(placed), medianMs(hand), medianMs(generated)];
    console.log(
      `| ${name} | ${placedMs.toFixed(0)} | ${handMs.toFixed(0)} | ${generatedMs.toFixed(0)} | ${(generatedMs / placedMs).toFixed(2)} | ${(generatedMs / handMs).toFixed(2)} |`,
    );
  };
  row("first", ({ firstMs }) => [firstMs]);
  row("one line changed", ({ changedMs }) => changedMs);
}

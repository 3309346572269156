import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import {
  api,
  local,
  pay,
  plainServer,
  redeploy,
  remove,
  Repository,
  request,
  until,
  launch,
  type Created,
  type Files,
} from "../test/e2e/service.ts";
import { askApart } from "./ask-apart.ts";
import { person } from "../test/conformance/service.ts";

/**
 * The effect of one tenant's attack on another one on the same host and control plane: the victim's requests, API
 * reads, followed log and deployments, alternating between quiet and each attack. Load generators, attacker and
 * victim share this machine's cores, so each attack that is a load is compared with the same load on something
 * harmless.
 */
const seconds = Number(process.env["BENCH_SECONDS"] ?? 20);
const deployments = Number(process.env["BENCH_DEPLOYMENTS"] ?? 2);

type Api = typeof api;

/** Another account, with a session of its own. */
async function anotherAccount(): Promise<Api> {
  const { session } = await person();
  const headers = { Origin: local.siteUrl, "Content-Type": "application/json", Cookie: session.cookie };
  return async <Body>(method: string, path: string, body?: unknown) => {
    const { status, text } = await request(local.baseUrl + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status, body: JSON.parse(text) as Body };
  };
}

const attacker = await anotherAccount();
let made = 0;

/** A paid site of the attacker's with a deployment under way. */
async function attackerSite(files: Files): Promise<string> {
  const repository = new Repository(files);
  const { status, body } = await attacker<Created>("POST", "/sites", {
    name: `attack-${++made}`,
    deployType: "github",
    githubUrl: repository.address,
  });
  if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
  await pay(body.invoiceToken);
  return body.siteId;
}

type SiteRecord = { status: string; url: string; latestDeployment: { error: string | null } | null };
const attackersRecord = async (id: string) => (await attacker<SiteRecord>("GET", `/sites/${id}`)).body;
async function attackersRunning(files: Files): Promise<{ id: string; url: string }> {
  const id = await attackerSite(files);
  const { status, url, latestDeployment } = await until(
    () => attackersRecord(id),
    (record) => record.status !== "DEPLOYING",
    300_000,
  );
  if (status !== "RUNNING") throw new Error(`The attacker's site is ${status}: ${latestDeployment?.error}`);
  return { id, url };
}
async function removeOf(id: string): Promise<void> {
  await attacker("DELETE", `/sites/${id}`);
  await until(
    async () => (await attacker("GET", `/sites/${id}`)).status,
    (status) => status === 404,
    300_000,
  );
}

/** Sends many requests a second from this process, which stands for other machines, whatever became of earlier ones. */
function askSteadily(perSecond: number, ask: () => Promise<unknown>): () => Promise<void> {
  const pending = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const asking: Promise<void> = ask()
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => pending.delete(asking));
    pending.add(asking);
  }, 1000 / perSecond);
  return async () => {
    clearInterval(timer);
    await Promise.all(pending);
  };
}

const quantile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN;

const victimFiles: Files = {
  ...plainServer("victim"),
  "server.js": `require("node:http").createServer((q, s) => { console.log(Date.now()); s.end("ok"); }).listen(process.env.PORT || 3000);\n`,
};
const victim = await launch({ githubUrl: new Repository(victimFiles).address });
if (victim.status !== "RUNNING") throw new Error(`The victim is ${victim.status}`);

/** Follows the victim's log as its owner does and measures the age of lines on arrival. */
function followLog(key: string) {
  const ageMs: number[] = [];
  const url = `${local.baseUrl}/sites/${victim.id}/logs?follow=1&tail=0`;
  let ended = false;
  const outgoing = http.get(url, { headers: { Authorization: `Bearer ${key}` } }, (response) => {
    response.setEncoding("utf8").on("data", (chunk: string) => {
      for (const [, at] of chunk.matchAll(/"(1\d{12})"/g)) ageMs.push(Date.now() - Number(at));
    });
    response.on("error", () => undefined).on("close", () => (ended = true));
  });
  outgoing.on("error", () => (ended = true));
  return () => {
    const lost = ended;
    outgoing.destroy();
    return { ageMs, lost };
  };
}

type Seen = { requests: number[]; reads: number[]; log: number[]; deployMs: number[]; failed: number };

/** A window of the victim's ordinary use. */
async function use(): Promise<Seen> {
  const stopLog = followLog(local.apiKey);
  const stopRequests = askApart(victim.url, 20);
  const stopReads = askApart(`${local.siteUrl}/health`, 20);
  const deployMs: number[] = [];
  const endMs = performance.now() + seconds * 1000;
  for (let done = 0; done < deployments; done++) {
    const startedMs = performance.now();
    const outcome = await redeploy(victim.id).then(
      ({ status, error }) => (status === "LIVE" ? null : `${status}: ${error}`),
      String,
    );
    if (outcome !== null) console.log(`  The victim's deployment: ${outcome}`);
    deployMs.push(outcome === null ? performance.now() - startedMs : Number.POSITIVE_INFINITY);
  }
  if (performance.now() < endMs) await delay(endMs - performance.now());
  const [requests, reads] = await Promise.all([stopRequests(), stopReads()]);
  const { ageMs, lost } = stopLog();
  const failed = requests.failed + reads.failed + (lost ? 1 : 0);
  return { requests: requests.tookMs, reads: reads.tookMs, log: ageMs, deployMs, failed };
}

type Attack = { name: string; start: () => Promise<() => Promise<void>> };

const app = (source: string): Files => ({ ...plainServer("x"), "server.js": source });
const listening = `require("node:http").createServer((q, s) => s.end("ok")).listen(process.env.PORT || 3000);\n`;
const nodeApp = {
  "package.json": `{"scripts":{"start":"node server.js"},"dependencies":{}}`,
  "server.js": listening,
};

const deploying =
  (files: Files, sites = 1) =>
  async () => {
    const ids = await Promise.all(Array.from({ length: sites }, () => attackerSite(files)));
    return async () => void (await Promise.all(ids.map(removeOf)));
  };

const attacks: Attack[] = [
  { name: "900 kB of line ends in .npmrc", start: deploying({ ...nodeApp, ".npmrc": "\n".repeat(900_000) }) },
  {
    name: ".dockerignore of 32 KiB over 2,000 files",
    start: deploying({
      ...plainServer("x"),
      ".dockerignore": `f/${"*a".repeat(15_990)}\n`,
      ...Object.fromEntries(
        Array.from({ length: 2000 }, (_, at) => [`f/${"a".repeat(200)}N${at}`, ""] as const),
      ),
    }),
  },
  {
    name: "8 builds that sleep for 45 s",
    start: deploying({ Dockerfile: "FROM node:24-bookworm-slim\nRUN sleep 45\nCMD sleep 1000\n" }, 8),
  },
  {
    name: "8 builds that use every core for 45 s",
    start: deploying(
      {
        Dockerfile:
          "FROM node:24-bookworm-slim\nRUN for i in 1 2 3 4; do timeout 45 sh -c 'while :; do :; done' & done; wait\nCMD sleep 1000\n",
      },
      8,
    ),
  },
  {
    name: "150 readers of a 9.9 MB header who do not read",
    start: async () => {
      const { id, url } = await attackersRunning(
        app(
          `require("node:net").createServer((c) => { c.on("error", () => {}); c.once("data", () => c.end("HTTP/1.1 200 OK\\r\\nX: " + "a".repeat(9.9e6) + "\\r\\nContent-Length: 2\\r\\n\\r\\nok")); }).listen(process.env.PORT || 3000);\n`,
        ),
      );
      const { port, host } = new URL(url);
      const connections = Array.from({ length: 150 }, () =>
        http
          .get({ host: "127.0.0.1", port, headers: { Host: host }, agent: false }, (response) =>
            response.pause(),
          )
          .on("error", () => undefined),
      );
      return async () => {
        for (const connection of connections) connection.destroy();
        await removeOf(id);
      };
    },
  },
  {
    name: "400 requests a second to an app that accepts none",
    start: async () => {
      const { id, url } = await attackersRunning(
        app(
          `const s = require("node:http").createServer((q, r) => { r.end("ok"); setTimeout(() => s.close(), 20000); s.closeIdleConnections(); }).listen(process.env.PORT || 3000); setInterval(() => {}, 1e9);\n`,
        ),
      );
      await request(url);
      await until(
        () => request(url).catch(() => ({ status: 0 })),
        ({ status }) => status !== 200,
        60_000,
      );
      const stop = askSteadily(400, () => request(url));
      return async () => {
        await stop();
        await removeOf(id);
      };
    },
  },
  {
    name: "400 requests a second to a healthy site (beside it)",
    start: async () => askSteadily(400, () => request(local.sampleSite.url)),
  },
  {
    name: "an app that writes its log at full speed",
    start: async () => {
      const { id } = await attackersRunning(
        app(
          `require("node:http").createServer((q, s) => s.end("ok")).listen(process.env.PORT || 3000); const line = "x".repeat(4000) + "\\n"; (function go() { while (process.stdout.write(line)); process.stdout.once("drain", go); })();\n`,
        ),
      );
      return () => removeOf(id);
    },
  },
  {
    name: "500 invented session cookies a second",
    start: async () => {
      return askSteadily(500, () =>
        request(`${local.baseUrl}/sites`, {
          headers: { Cookie: `berth_session=${"a".repeat(32)}.${"b".repeat(43)}%3D` },
        }),
      );
    },
  },
  {
    name: "10 wrong sign-ins a second",
    start: async () => {
      let count = 0;
      return askSteadily(10, () =>
        request(`${local.siteUrl}/api/auth/sign-in/email`, {
          method: "POST",
          headers: { Origin: local.siteUrl, "Content-Type": "application/json" },
          body: JSON.stringify({ email: `nobody-${count++}@example.com`, password: "wrong password" }),
        }),
      );
    },
  },
];

const row = (name: string, { requests, reads, log, deployMs, failed }: Seen): string =>
  `| ${[
    name,
    ...[requests, reads, log].flatMap((values) =>
      [quantile(values, 0.5), quantile(values, 0.99)].map((ms) => ms.toFixed(0)),
    ),
    (Math.max(...deployMs) / 1000).toFixed(1),
    failed,
  ].join(" | ")} |`;

const only = process.env["BENCH_ATTACK"];
console.log(`
| | requests, ms | p99 | /health, ms | p99 | age of log lines, ms | p99 | slowest deployment, s | failed |
|---|---|---|---|---|---|---|---|---|`);
for (const { name, start } of attacks.filter((attack) => only === undefined || attack.name.includes(only))) {
  console.log(row("quiet", await use()));
  const stop = await start();
  console.log(row(name, await use()));
  await stop();
}
await remove(victim.id);

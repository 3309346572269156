import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createEngine } from "../agent/docker/client.ts";
import { accessLogVolume } from "../agent/ingress/access-log.ts";
import { ingressContainer, startIngress } from "../agent/ingress/container.ts";
import { AccessLog } from "../agent/running/access-log.ts";
import { openRequestRecords } from "../agent/running/request-records.ts";
import { succeeds } from "../scripts/lib/command.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { readUsage } from "../agent/docker/usage.ts";
import { freePort } from "../scripts/lib/state.ts";
import { openRoutes } from "../agent/ingress/routes.ts";
import { median } from "./workerd.ts";

/**
 * Requests per second through the ingress to one app, with the access log, which an agent in this process reads meanwhile, and
 * without it: two ingresses that take turns. A site with rules takes its turn with the first. The app answers a fixed page with
 * as little work as a program can.
 */
const seconds = 3;
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 9);
const connections = 32;
const host = "bench.localhost";
const hostWithRules = "rules.localhost";

if (!(await succeeds("sh", ["-c", "command -v wrk"]))) await installPackages(["wrk"]);

const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const folder = mkdtempSync(join(tmpdir(), "berth-bench-"));
const routesFile = join(folder, "ingress", "routes.json");
const [responderPort, statusPort] = [await freePort(), await freePort()];
const responder = spawn(
  process.execPath,
  [
    join(import.meta.dirname, "../agent/ingress/responder.ts"),
    routesFile,
    String(responderPort),
    String(statusPort),
  ],
  { stdio: "ignore" },
);
const routes = openRoutes(routesFile, statusPort);
const appPort = await freePort();
const page = "x".repeat(2000);
const app = spawn(
  process.execPath,
  [
    "-e",
    `require("node:http").createServer((_, response) => response.end("${page}")).listen(${appPort}, "127.0.0.1")`,
  ],
  { stdio: "ignore" },
);

type Config = {
  apps: { http: { servers: Record<string, { logs?: object; routes: { handle: object[] }[] }> } };
};

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    http
      .get({ host: "127.0.0.1", port, headers: { Host: host }, agent: false }, (response) =>
        response.resume().on("end", () => resolve(response.statusCode === 200)),
      )
      .on("error", () => resolve(false));
  });

async function start(isLogging: boolean) {
  const agentId = `bench${randomBytes(6).toString("hex")}`;
  const port = await freePort();
  const { spec } = ingressContainer(agentId, {
    address: "127.0.0.1",
    port,
    responderPort,
    statusPort,
    tls: null,
  });
  const env = (spec.Env ?? []).map((one) => {
    const [name, text = ""] = one.split(/=(.*)/s, 2);
    if (name !== "BERTH_CADDY_CONFIG" || isLogging) return one;
    const config = JSON.parse(text) as Config;
    for (const server of Object.values(config.apps.http.servers)) {
      delete server.logs;
      for (const route of server.routes) route.handle = route.handle.filter((one) => !("key" in one));
    }
    return `${name}=${JSON.stringify(config)}`;
  });
  const containerId = await startIngress(engine, { ...spec, Env: env });
  while (!(await answers(port))) await delay(50);
  const { pid = 0 } = (await engine.inspectContainer(containerId)) ?? {};
  const processorMs = () => (readUsage(containerId, pid)?.cpuNanoseconds ?? 0) / 1e6;
  return { agentId, port, containerId, processorMs };
}

const target = { containerId: "app", address: "127.0.0.1", port: appPort };
await routes.route("site_1", [host], [target]);
await routes.route("site_2", [hostWithRules], [target]);
await routes.rule("site_2", {
  redirects: [{ from: "/old", to: "/new" }],
  headers: { "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff" },
});
const [logging, silent] = [await start(true), await start(false)];
const requests = openRequestRecords(join(folder, "requests.db"));
const reading = new AbortController();
new AccessLog({ engine, ingress: routes, requests, agentId: logging.agentId }).watch(1000, reading.signal);

type Figures = { perSecond: number; ingressUs: number; agentUs: number };

/** In a process of its own, so that this one reads the log meanwhile. Processor time is per request. */
async function run({ port, processorMs }: typeof logging, hostname = host): Promise<Figures> {
  const [ingressMs, own] = [processorMs(), process.cpuUsage()];
  const wrk = spawn("wrk", [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "-H",
    `Host: ${hostname}`,
    `http://127.0.0.1:${port}/page?n=1&token=a`,
  ]);
  let output = "";
  for await (const chunk of wrk.stdout.setEncoding("utf8")) output += String(chunk);
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(output);
  const count = Number(/(\d+) requests in/.exec(output)?.[1]);
  // What is left to read of this run.
  await delay(1500);
  const { user, system } = process.cpuUsage(own);
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    ingressUs: ((processorMs() - ingressMs) * 1000) / count,
    agentUs: (user + system) / count,
  };
}

try {
  const [withLog, without, withRules]: [Figures[], Figures[], Figures[]] = [[], [], []];
  await run(logging);
  await run(logging, hostWithRules);
  await run(silent);
  for (let round = 0; round < rounds; round++) {
    // What comes first alternates, as the machine warms up and cools down.
    for (const isLogging of round % 2 === 0 ? [true, false] : [false, true])
      (isLogging ? withLog : without).push(await run(isLogging ? logging : silent));
    withRules.push(await run(logging, hostWithRules));
    console.log(`round ${round + 1}`, withLog.at(-1), without.at(-1), withRules.at(-1));
  }
  console.log(`\nMedians of ${rounds} × ${seconds} s, ${connections} connections\n`);
  console.log(
    "| | without the log | with it | ratio | with rules too | ratio to without |\n|---|---|---|---|---|---|",
  );
  for (const [name, key] of [
    ["requests a second", "perSecond"],
    ["ingress, µs of a processor per request", "ingressUs"],
    ["agent, µs of a processor per request", "agentUs"],
  ] as const) {
    const of = (all: Figures[]) => median(all.map((one) => one[key])) ?? 0;
    const [on, off, ruled] = [of(withLog), of(without), of(withRules)];
    console.log(
      `| ${name} | ${off.toFixed(1)} | ${on.toFixed(1)} | ${(on / off).toFixed(3)} | ${ruled.toFixed(1)} | ${(ruled / on).toFixed(3)} |`,
    );
  }
} finally {
  reading.abort();
  app.kill();
  for (const { containerId, agentId } of [logging, silent]) {
    await engine.removeContainer(containerId);
    await engine.removeVolume(accessLogVolume(agentId));
  }
  requests.close();
  responder.kill();
  rmSync(folder, { recursive: true });
}

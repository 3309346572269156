import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
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
import { freePort } from "../scripts/lib/state.ts";
import { get, TestResponder } from "../test/support/ingress.ts";
import { median } from "./workerd.ts";

/**
 * Requests per second through the ingress to one app, with the access log, which an agent in this process reads meanwhile, and
 * without it: two ingresses that take turns. The app answers a fixed page with as little work as a program can.
 */
const seconds = 3;
const rounds = 9;
const connections = 32;
const host = "bench.localhost";

if (!(await succeeds("sh", ["-c", "command -v wrk"]))) await installPackages(["wrk"]);

const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const folder = mkdtempSync(join(tmpdir(), "berth-bench-"));
const responder = await TestResponder.start();
const routes = responder.openRoutes();
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

async function start(isLogging: boolean) {
  const agentId = `bench${randomBytes(6).toString("hex")}`;
  const port = await freePort();
  const { dnsPort: responderPort, statusPort } = responder;
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
  while ((await get(port, host).catch(() => ({ status: 0 }))).status !== 200) await delay(50);
  return { agentId, port, containerId };
}

await routes.route("site_1", [host], [{ containerId: "app", address: "127.0.0.1", port: appPort }]);
const [logging, silent] = [await start(true), await start(false)];
const requests = openRequestRecords(join(folder, "requests.db"));
const reading = new AbortController();
new AccessLog({ engine, ingress: routes, requests, agentId: logging.agentId }).watch(1000, reading.signal);

/** In a process of its own, so that this one reads the log meanwhile. */
async function run(port: number): Promise<number> {
  const wrk = spawn("wrk", [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "-H",
    `Host: ${host}`,
    `http://127.0.0.1:${port}/page?n=1&token=a`,
  ]);
  let output = "";
  for await (const chunk of wrk.stdout.setEncoding("utf8")) output += String(chunk);
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(output);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]);
}

try {
  const [withLog, without]: [number[], number[]] = [[], []];
  await run(logging.port);
  await run(silent.port);
  for (let round = 0; round < rounds; round++) {
    // What comes first alternates, as the machine warms up and cools down.
    for (const isLogging of round % 2 === 0 ? [true, false] : [false, true])
      (isLogging ? withLog : without).push(await run((isLogging ? logging : silent).port));
    console.log(
      `round ${round + 1}: ${withLog.at(-1)?.toFixed(0)} with, ${without.at(-1)?.toFixed(0)} without`,
    );
  }
  const [on, off] = [median(withLog), median(without)];
  console.log(
    `\nRequests a second through the ingress, ${connections} connections, median of ${rounds} × ${seconds} s\n`,
  );
  console.log("| without the log | with it | ratio |\n|---|---|---|");
  console.log(`| ${off.toFixed(0)} | ${on.toFixed(0)} | ${(on / off).toFixed(3)} |`);
} finally {
  reading.abort();
  app.kill();
  for (const { containerId, agentId } of [logging, silent]) {
    await engine.removeContainer(containerId);
    await engine.removeVolume(accessLogVolume(agentId));
  }
  requests.close();
  await responder.stop();
  rmSync(folder, { recursive: true });
}

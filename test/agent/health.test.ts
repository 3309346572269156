import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { FailingCheck } from "../../protocol/agent/messages.ts";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { HealthWatch } from "../../agent/running/health.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signal = new AbortController().signal;
let folder: string;
let records: Records;
let server: http.Server;
let status: number;
let asked: string[];
let serving: Target[];
let labels: Record<string, string>;
let running: boolean;
let watch: HealthWatch;
let failing: FailingCheck[][];
let nowMs = 0;

beforeEach(async () => {
  folder = temporaryFolder();
  records = openRecords(join(folder, "running.db"));
  [status, asked, running, failing] = [200, [], true, []];
  server = http.createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  serving = [{ containerId: "c1", address: "127.0.0.1", port }];
  labels = { "berth.health": "/up?x=1", "berth.deployment": "dep_1", "berth.replicas": "1" };
  watch = new HealthWatch({
    engine: {
      listContainers: () => Promise.resolve([{ id: "c1", name: "c1", labels, running }]),
    } as unknown as Engine,
    ingress: {
      sites: () => ["site_1"],
      hostnames: () => ["site-1.example.com"],
      current: () => serving,
    } as unknown as Ingress,
    records,
    agentId: "agent",
    now: () => nowMs,
    onFailing: (all) => failing.push(all),
  });
});
afterEach(() => {
  server.close();
  records.close();
});

const look = async (times: number) => {
  for (let count = 0; count < times; count++) {
    nowMs += 30_000;
    await watch.look(signal);
  }
};
const told = () => records.events("site_1").map(({ kind, detail }) => [kind, detail]);

it("a health check that fails three times in a row is told once, and that it succeeds again", async () => {
  await look(1);
  status = 500;
  await look(2);
  expect(told()).toEqual([]);
  await look(4);
  const failed = ["unhealthy", "The health check /up?x=1 of version dep_1 answers 500, 3 times in a row."];
  expect(told()).toEqual([failed]);
  status = 302;
  await look(2);
  expect(told()).toEqual([failed, ["healthy", "The health check /up?x=1 of version dep_1 succeeds again."]]);
  expect(new Set(asked)).toEqual(new Set(["site-1.example.com/up?x=1"]));
});

it("all checks that fail are told when one begins or ceases to, also because its version is replaced", async () => {
  status = 500;
  await look(4);
  const detail = "The health check /up?x=1 of version dep_1 answers 500, 3 times in a row.";
  expect(failing).toEqual([[{ siteId: "site_1", detail }]]);
  status = 200;
  await look(2);
  expect(failing.slice(1)).toEqual([[]]);
  status = 500;
  await look(3);
  serving = [];
  await look(2);
  expect(failing.slice(2)).toEqual([[{ siteId: "site_1", detail }], []]);
});

it("nothing is told after the agent's start before each check has succeeded or failed often enough to say so", async () => {
  status = 500;
  await look(2);
  expect(failing).toEqual([]);
  status = 200;
  await look(2);
  expect(failing).toEqual([[]]);
});

it("a check that takes longer than usual to be sure of holds no other back", async () => {
  labels["berth.health-check"] = JSON.stringify({ failures: 20 });
  status = 500;
  await look(2);
  expect(failing).toEqual([]);
  await look(1);
  expect(failing).toEqual([[]]);
});

it("failures that one success parts are none in a row", async () => {
  for (const next of [500, 500, 200, 500, 500, 200]) {
    status = next;
    await look(1);
  }
  expect(told()).toEqual([]);
});

it("nothing is asked of what has no health check, does not run, or serves no more", async () => {
  status = 500;
  labels = { ...labels, "berth.health": "" };
  await look(3);
  labels = { ...labels, "berth.health": "/up" };
  running = false;
  await look(3);
  running = true;
  serving = [];
  await look(3);
  expect([asked, told()]).toEqual([[], []]);
});

it("an answer of a container that was swapped meanwhile says nothing of the new one", async () => {
  status = 500;
  await look(2);
  server.once("request", () => (serving = []));
  await look(1);
  expect(told()).toEqual([]);
});

it("a health check is as often, as patient and as forgiving as its site says", async () => {
  labels["berth.health-check"] = JSON.stringify({ intervalSeconds: 90, failures: 1, timeoutSeconds: 1 });
  await look(6);
  expect(asked).toHaveLength(2);
  server.removeAllListeners("request");
  server.on("request", () => undefined);
  await look(3);
  expect(told()).toEqual([["unhealthy", "The health check /up?x=1 of version dep_1 gave no answer."]]);
});

it("a site without HTTP is checked by whether its port takes connections", async () => {
  labels["berth.health-check"] = JSON.stringify({ kind: "tcp", failures: 1 });
  await look(2);
  expect([asked, told()]).toEqual([[], []]);
  const { port } = serving[0] ?? { port: 0 };
  server.close();
  await look(1);
  expect(told()).toMatchObject([
    ["unhealthy", expect.stringContaining(`The health check of port ${port} of`)],
  ]);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await look(1);
  expect(told()).toMatchObject([["unhealthy"], ["healthy"]].map(([kind]) => [kind, expect.any(String)]));
});

it("what an image says of checks, in a container of an older agent, counts for nothing", async () => {
  for (const forged of ["{", '{"intervalSeconds":0}', "7"]) {
    labels["berth.health-check"] = forged;
    await look(1);
  }
  expect(asked).toHaveLength(3);
});

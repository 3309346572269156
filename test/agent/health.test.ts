import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import type { Ingress, Target } from "../../agent/ingress/ingress.ts";
import { HealthWatch } from "../../agent/running/health.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";

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

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "berth-health-"));
  records = openRecords(join(folder, "running.db"));
  [status, asked, running] = [200, [], true];
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
  });
});
afterEach(() => {
  server.close();
  records.close();
  rmSync(folder, { recursive: true });
});

const look = async (times: number) => {
  for (let count = 0; count < times; count++) await watch.look(signal);
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

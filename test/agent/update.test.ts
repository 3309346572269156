import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openUpdates } from "../../agent/update.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let file: string;
let server: http.Server;
let siteUrl: string;
let asked: number;
let failing: number;
let body: string;
const restarts: string[] = [];
const errors: unknown[] = [];
const next = "console.error(process.argv[3]);\n";
const sha256 = createHash("sha256").update(next).digest("hex");
const served = { version: "2.0.0", sha256, responderSha256: sha256 };

beforeEach(async () => {
  folder = temporaryFolder();
  file = join(folder, "agent.mjs");
  writeFileSync(file, "console.log('this');\n");
  [asked, failing, body, restarts.length, errors.length] = [0, 0, next, 0, 0];
  server = http.createServer((request, response) => {
    asked++;
    const isServed = /^\/install\/(agent|responder)\.mjs$/.test(request.url ?? "");
    if (asked <= failing) response.writeHead(503).end();
    else response.writeHead(isServed ? 200 : 404).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  siteUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => server.close());

const update = (retryMs?: number) =>
  openUpdates({
    retryMs,
    siteUrl,
    file,
    restart: async (version) => void restarts.push(version),
    onError: (error) => errors.push(error),
  });

it("an agent of another version replaces its file as a whole and restarts, once", async () => {
  const { onWelcome: welcomed } = update();
  welcomed(served);
  welcomed(served);
  await vi.waitUntil(() => restarts.length > 0, 10_000);
  expect(readFileSync(file, "utf8")).toBe(next);
  expect(readdirSync(folder)).toEqual(["agent.mjs"]);
  expect([asked, restarts]).toEqual([1, ["2.0.0"]]);
  update().onWelcome(served);
  expect(asked).toBe(1);
});

it("a responder of another version is replaced without a restart of the agent; a host without one beside it is left so", async () => {
  const responder = join(folder, "responder.mjs");
  writeFileSync(file, next);
  update().onWelcome(served);
  expect(asked).toBe(0);
  writeFileSync(responder, "console.log('this');\n");
  const { onWelcome: welcomed } = update();
  welcomed(served);
  welcomed(served);
  await vi.waitUntil(() => readFileSync(responder, "utf8") === next, 10_000);
  expect([asked, restarts, errors]).toEqual([1, [], []]);
});

it("a responder that is not what was announced is refused, and the agent stays with it", async () => {
  const responder = join(folder, "responder.mjs");
  writeFileSync(responder, "console.log('this');\n");
  update().onWelcome({ ...served, responderSha256: "0".repeat(64) });
  await vi.waitUntil(() => errors.length > 0, 10_000);
  expect(String(errors[0])).toContain("The new responder is not what was announced");
  expect([readFileSync(responder, "utf8"), readFileSync(file, "utf8")]).toEqual(
    Array(2).fill("console.log('this');\n"),
  );
});

it("what is not the bundle that was announced is refused, and tried again at the next welcome", async () => {
  const { onWelcome: welcomed } = update();
  for (const count of [1, 2]) {
    welcomed({ ...served, version: "3.0.0", sha256: "0".repeat(64) });
    await vi.waitUntil(() => errors.length === count, 10_000);
  }
  expect(String(errors[0])).toContain("SHA-256 differs");
  expect(readFileSync(file, "utf8")).toBe("console.log('this');\n");
  expect(restarts).toEqual([]);
});

it("what could not be fetched is fetched again, without another welcome, ever later", async () => {
  failing = 3;
  const began = performance.now();
  const { onWelcome, problem } = update(10);
  expect(problem()).toBe(null);
  onWelcome(served);
  await vi.waitUntil(() => problem() !== null, 10_000);
  expect(problem()).toMatch(/^Its agent was not updated, .*: The new agent could not be fetched: 503\. /);
  await vi.waitUntil(() => restarts.length > 0, 10_000);
  expect(performance.now() - began).toBeGreaterThan(10 + 20 + 40 - 3);
  expect([readFileSync(file, "utf8"), errors.length, asked]).toEqual([next, 3, 4]);
  expect(problem()).toBe(null);
});

it("a failed update is tried again as it was last announced", async () => {
  const { onWelcome: welcomed } = update(10);
  welcomed({ ...served, version: "3.0.0", sha256: "0".repeat(64) });
  await vi.waitUntil(() => errors.length > 0, 10_000);
  welcomed(served);
  await vi.waitUntil(() => restarts.length > 0, 10_000);
  expect(restarts).toEqual(["2.0.0"]);
});

it("an agent that this host's Node cannot load does not replace the one that runs", async () => {
  body = 'import { notThere } from "node:fs";\nnotThere();\n';
  update().onWelcome({ ...served, sha256: createHash("sha256").update(body).digest("hex") });
  await vi.waitUntil(() => errors.length > 0, 10_000);
  expect(String(errors[0])).toMatch(/cannot be loaded by Node v\S+: SyntaxError: .*notThere/);
  expect([readFileSync(file, "utf8"), readdirSync(folder), restarts]).toEqual([
    "console.log('this');\n",
    ["agent.mjs"],
    [],
  ]);
});

it.each([
  ["finds nothing wrong", ""],
  ["finds this machine unfit", "console.error('Docker does not answer'); process.exitCode = 1;\n"],
])(
  "an older service's agent, whose check looks at the engine and reads no settings, replaces a newer one: it %s",
  async (_, older) => {
    body = older;
    update().onWelcome({ ...served, sha256: createHash("sha256").update(older).digest("hex") });
    await vi.waitUntil(() => restarts.length + errors.length > 0, 10_000);
    expect([errors, restarts, readFileSync(file, "utf8")]).toEqual([[], ["2.0.0"], older]);
  },
);

it("an agent that ends by a signal as it is loaded does not replace the one that runs", async () => {
  body = "process.kill(process.pid, 'SIGKILL');\n";
  update().onWelcome({ ...served, sha256: createHash("sha256").update(body).digest("hex") });
  await vi.waitUntil(() => restarts.length + errors.length > 0, 10_000);
  expect([String(errors[0]), restarts]).toEqual([expect.stringContaining("cannot be loaded by Node"), []]);
});

it("a service that cannot be reached is named with what the network says, until what runs is what is served", async () => {
  const { onWelcome, problem } = update();
  await new Promise((resolve) => server.close(resolve));
  onWelcome(served);
  await vi.waitUntil(() => problem() !== null, 10_000);
  expect(problem()).toMatch(/fetch failed: .*ECONNREFUSED/);
  onWelcome({ ...served, sha256: createHash("sha256").update(readFileSync(file)).digest("hex") });
  await vi.waitUntil(() => problem() === null, 10_000);
});

it("without an agent that is served nothing happens", () => {
  update().onWelcome(undefined);
  expect(asked).toBe(0);
});

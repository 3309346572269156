import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import { openIngressContainer } from "../../agent/startup/ensure-ingress.ts";
import { partsOf, watchIngress } from "../../agent/ingress/watch.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { get, TestResponder } from "../support/ingress.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const name = "shop.localhost";
const site = http.createServer((_, response) => response.end("serves"));
const watching = new AbortController();
const replaced: string[] = [];
let responder: TestResponder;
let settings: IngressSettings;
let containerName: string;

const answers = (): Promise<string> =>
  Promise.race([
    get(settings.port, name).then(({ text }) => text, String),
    new Promise<string>((resolve) => setTimeout(resolve, 1000, "nothing")),
  ]);
const caddyId = () =>
  Number(
    /^(\d+) +caddy$/m.exec(
      execFileSync("docker", ["top", containerName, "-eo", "pid,comm"], { encoding: "utf8" }),
    )?.[1],
  );

beforeAll(async () => {
  responder = await TestResponder.start();
  await once(site.listen(0, "127.0.0.1"), "listening");
  const { port } = site.address() as AddressInfo;
  await responder.openRoutes().route("site_1", [name], [{ containerId: "c", address: "127.0.0.1", port }]);
  const { dnsPort: responderPort, statusPort } = responder;
  settings = { address: "127.0.0.1", port: await freePort(), responderPort, statusPort, tls: null };
  const { spec } = ingressContainer(agentId, settings);
  containerName = spec.name;
  await startIngress(engine, spec);
  await vi.waitUntil(async () => (await answers()) === "serves", { timeout: 20_000 });
  const { renew } = openIngressContainer({ engine }, spec, settings, watching.signal);
  void watchIngress(partsOf(settings, { routesFile: responder.file, renewCaddy: renew }), {
    signal: watching.signal,
    startMs: 5000,
    onProblem: () => undefined,
    onReplaced(part) {
      replaced.push(part);
      // As whoever supervises it would.
      if (part === "responder") void responder.run();
    },
  });
});
afterAll(async () => {
  watching.abort();
  site.close();
  const found = await engine.inspectContainer(containerName);
  if (found) await engine.removeContainer(found.id);
  await engine.removeVolume(accessLogVolume(agentId));
  await responder.stop();
});

it.each([
  ["ingress", caddyId],
  ["responder", () => responder.processId],
] as const)("a hung %s is replaced, alone, and sites answer again", async (part, processId) => {
  process.kill(processId(), "SIGSTOP");
  const began = performance.now();
  // What Caddy has looked up serves for a moment.
  await vi.waitUntil(() => replaced.length > 0, { timeout: 30_000 });
  await vi.waitUntil(async () => (await answers()) === "serves", { timeout: 30_000 });
  expect(performance.now() - began).toBeLessThan(50_000);
  expect(replaced.splice(0)).toEqual([part]);
});

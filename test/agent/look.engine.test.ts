import { randomBytes } from "node:crypto";
import { afterAll, expect, it, vi } from "vitest";
import { networkLabels, networkName, siteContainer } from "../../agent/docker/specs.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import { lookAtSite } from "../../agent/running/look.ts";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { formatId } from "../../protocol/ids.ts";
import { engine } from "../support/engine.ts";
import { runSpec } from "../support/run-spec.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = formatId("account", Date.now(), randomBytes(10));
const siteId = formatId("site", Date.now(), randomBytes(10));
const made: string[] = [];
let served: Target[] = [];

afterAll(async () => {
  for (const id of made) await engine.removeContainer(id);
  await engine.removeNetwork(networkName(accountId));
});

const look = () =>
  lookAtSite(
    {
      engine,
      agentId,
      ingress: { current: () => served, hostnames: () => ["a.localhost"] },
      diskFreeMb: () => Promise.resolve(1234),
    },
    { siteId, port: 3000 },
    AbortSignal.timeout(20_000),
  );

async function start(code: string, release: string, changes: Partial<RunSpec> = {}): Promise<string> {
  await engine.ensureNetwork(
    networkName(accountId),
    `br${randomBytes(5).toString("hex")}`,
    networkLabels(accountId),
  );
  const run = runSpec({ siteId, accountId, healthCheckPath: "/up", ...changes });
  const spec = siteContainer(agentId, run, "dep_1", "node:24-bookworm-slim", release);
  const id = await engine.createContainer({ ...spec, Cmd: ["node", "-e", code], Entrypoint: [] });
  made.push(id);
  await engine.startContainer(id);
  return id;
}

it("a site's containers are told as they are: what they listen on, what they answer, how they ended", async () => {
  const code = `require("http").createServer((q, r) => r.writeHead(q.url === "/up" ? 503 : 200).end()).listen(3000, "0.0.0.0")`;
  const serving = await start(code, "one");
  served = [{ containerId: serving, address: "", port: 3000 }];
  const found = await vi.waitUntil(
    async () => {
      const { containers, ...site } = await look();
      return containers[0]?.listens.length ? { ...site, container: containers[0] } : undefined;
    },
    { timeout: 20_000 },
  );
  expect(found).toMatchObject({
    route: "serving",
    hostnames: ["a.localhost"],
    diskFreeMb: 1234,
    container: {
      serves: true,
      running: true,
      exitCode: null,
      outOfMemory: false,
      listens: [{ port: 3000, loopbackOnly: false }],
      probe: { port: 3000, path: "/up", isHealthy: false, answer: "answers 503" },
    },
  });
  // With this policy the engine does not start it again.
  await start("process.exit(7)", "two", { lifecycle: { restartPolicy: "never" } });
  const ended = await vi.waitUntil(
    async () => (await look()).containers.find(({ serves, running }) => !serves && !running),
    { timeout: 20_000 },
  );
  expect(ended).toMatchObject({ exitCode: 7, restarts: 0, probe: null, listens: [] });
});

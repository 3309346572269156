import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { commandContainer, networkName, siteContainer } from "../../agent/docker/specs.ts";
import { bridgeName } from "../../agent/isolation/rules.ts";
import { engine, newId } from "../support/engine.ts";
import { runSpec } from "../support/run-spec.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const network = networkName(accountId);
const image = "node:24-bookworm-slim";
const logOf = async (id: string) => {
  const { stdout, stderr } = await promisify(execFile)("docker", ["logs", id]);
  return stdout + stderr;
};

const made: string[] = [];
beforeAll(() => engine.ensureNetwork(network, bridgeName(agentId, network), { "berth.managed": "true" }));
afterAll(async () => {
  for (const id of made) await engine.removeContainer(id);
  await engine.removeNetwork(network);
});

/** As many official images do: it begins as root and becomes somebody else. */
const dropsRoot = (app: string) => `exec setpriv --reuid=1000 --regid=1000 --clear-groups node -e '${app}'`;
const app = dropsRoot(
  `process.on("SIGTERM", () => { console.log("ends in order"); process.exit(7); }); setInterval(() => {}, 1000); console.log("up");`,
);
const run = runSpec({ siteId: newId("site"), accountId, startCommand: app });
/** As nginx and PHP-FPM do, which drop their requests at SIGTERM. */
const endsAtSigquit = dropsRoot(
  `process.on("SIGQUIT", () => { console.log("ends in order"); process.exit(7); }); setInterval(() => {}, 1000); console.log("up");`,
);
const quits = { ...run, startCommand: endsAtSigquit, lifecycle: { stopSignal: "SIGQUIT" as const } };
const command = { commandId: newId("command"), command: app, timeoutSeconds: 60 };
const deploymentId = newId("deployment");
const lease = { jobId: newId("job"), attempt: 1 };

it.each([
  ["site", siteContainer(agentId, run, deploymentId, image, "")],
  ["site with a stop signal of its own", siteContainer(agentId, quits, deploymentId, image, "quits")],
  // A release command's is one of these.
  ["command", commandContainer(agentId, { ...command, run, deploymentId }, lease, image)],
])("a %s that gives up root hears its signal, and ends as it likes", async (_, spec) => {
  const id = await engine.createContainer(spec);
  made.push(id);
  await engine.startContainer(id);
  await vi.waitUntil(async () => (await logOf(id)).includes("up"), { timeout: 20_000, interval: 100 });
  await engine.stopContainer(id, 10);
  expect(await logOf(id)).toBe("up\nends in order\n");
  expect((await engine.inspectContainer(id))?.exitCode).toBe(7);
});

import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { compose } from "../../agent/compose.ts";
import { readConfig } from "../../agent/config.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { Hub } from "../support/hub.ts";
import { answers, TestResponder } from "../support/ingress.ts";

const token = `hst_0${randomBytes(43).toString("hex").slice(0, 43)}`;

let hub: Hub;
let responder: TestResponder;
let config: ReturnType<typeof readConfig>;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  hub = await Hub.open();
  responder = await TestResponder.start();
  config = readConfig({
    BERTH_URL: hub.url,
    BERTH_HOST_TOKEN: token,
    BERTH_STATE_DIR: dirname(dirname(responder.file)),
    BERTH_FIREWALL: "off",
    BERTH_INGRESS_ADDRESS: "127.0.0.1",
    BERTH_INGRESS_PORT: String(await freePort()),
    BERTH_RESPONDER_PORT: String(responder.dnsPort),
    BERTH_STATUS_PORT: String(responder.statusPort),
    ...(process.env["DOCKER_HOST"] && {
      BERTH_DOCKER_SOCKET: process.env["DOCKER_HOST"].replace("unix://", ""),
    }),
  });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  const found = await ingress();
  if (found) await engine.removeContainer(found.id);
  await engine.removeVolume(accessLogVolume(config.agentId));
  hub.close();
  await responder.stop();
});

const ingress = () => engine.inspectContainer(`berth-ingress-${config.agentId}`);

async function started() {
  const agent = compose(config, { programFile: "agent.ts", exit: () => undefined });
  stops.push(() => agent.stop());
  await agent.start();
  const connection = await hub.connection();
  const hello = await connection.next("hello");
  connection.send({ type: "welcome", epoch: 1, now: new Date().toISOString() });
  return { agent, connection, hello };
}

it("an agent that is stopped leaves its ingress running, and another one takes it over", async () => {
  const first = await started();
  expect(first.hello).toMatchObject({ running: [], finished: [], slots: config.slots });
  expect(await first.connection.next("ready")).toMatchObject({ free: config.slots });
  const before = await ingress();
  expect(before?.running).toBe(true);

  await first.agent.stop();
  await first.connection.closed;
  const second = await started();
  expect(await second.connection.next("inventory")).toMatchObject({ sites: [], databases: [] });
  expect((await ingress())?.id).toBe(before?.id);
});

it("an agent replaces an ingress that hangs, and tells the control plane", async () => {
  const { connection } = await started();
  expect(await connection.next("ready")).not.toHaveProperty("ingressReplacedAt");
  const hung = await ingress();
  if (!hung) throw new Error("There is no ingress");
  await answers(config.ingress.port, "unknown.localhost", 404);
  await engine.pauseContainer(hung.id);
  expect(await connection.next("ready")).toHaveProperty("ingressReplacedAt");
  expect((await ingress())?.id).not.toBe(hung.id);
  await answers(config.ingress.port, "unknown.localhost", 404);
}, 90_000);

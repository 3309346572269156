import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { compose } from "../../agent/compose.ts";
import { readConfig } from "../../agent/config.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { Hub } from "../support/hub.ts";

const token = `hst_0${randomBytes(43).toString("hex").slice(0, 43)}`;

let hub: Hub;
let folder: string;
let config: ReturnType<typeof readConfig>;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  hub = await Hub.open();
  folder = mkdtempSync(join(tmpdir(), "berth-compose-"));
  config = readConfig({
    BERTH_URL: hub.url,
    BERTH_HOST_TOKEN: token,
    BERTH_STATE_DIR: folder,
    BERTH_FIREWALL: "off",
    BERTH_INGRESS_ADDRESS: "127.0.0.1",
    BERTH_INGRESS_PORT: String(await freePort()),
    BERTH_RESPONDER_PORT: String(await freePort()),
    BERTH_STATUS_PORT: String(await freePort()),
    ...(process.env["DOCKER_HOST"] && {
      BERTH_DOCKER_SOCKET: process.env["DOCKER_HOST"].replace("unix://", ""),
    }),
  });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  const ingress = await engine.inspectContainer(`berth-ingress-${config.agentId}`);
  if (ingress) await engine.removeContainer(ingress.id);
  await engine.removeVolume(accessLogVolume(config.agentId));
  hub.close();
  rmSync(folder, { recursive: true });
});

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
  const ingress = await engine.inspectContainer(`berth-ingress-${config.agentId}`);
  expect(ingress?.running).toBe(true);

  await first.agent.stop();
  await first.connection.closed;
  const second = await started();
  expect(await second.connection.next("inventory")).toMatchObject({ sites: [], databases: [] });
  expect((await engine.inspectContainer(`berth-ingress-${config.agentId}`))?.id).toBe(ingress?.id);
});

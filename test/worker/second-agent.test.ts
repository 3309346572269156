import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import type { Host } from "../../protocol/api/hosts.ts";
import {
  account,
  agent,
  api,
  bindings,
  connect,
  hello,
  operator,
  ready,
  runningDatabase,
  runningSite,
  site,
} from "./service.ts";

afterEach(() => vi.useRealTimers());

const later = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);
const hostRecord = async (id: string) =>
  (await api<{ data: Host[] }>(await operator(), "GET", "/hosts")).body.data.find((one) => one.id === id);

/** A host with a site and a database, whose agent's process is called `own`. */
async function servingHost() {
  vi.useFakeTimers({ toFake: ["Date"] });
  const own = await agent(undefined, "own");
  own.send(hello());
  await own.next("welcome");
  own.send(ready(10));
  const key = await account();
  const { siteId } = await runningSite(key, own);
  const { databaseId } = await runningDatabase(key, own);
  const link = bindings.HOST_LINK.get(bindings.HOST_LINK.idFromName(own.hostId));
  /** The platform notes its own time of a ping. */
  const hear = () =>
    runInDurableObject(link, (_, state) => {
      for (const socket of state.getWebSockets()) {
        const attachment = socket.deserializeAttachment() as { openedAt: number };
        socket.serializeAttachment({ ...attachment, openedAt: Date.now() });
      }
    });
  return { own, key, siteId, databaseId, link, hear };
}

it("a second agent with a host's token is refused, and what runs on the host is not looked for on its machine", async () => {
  const { own, key, siteId, databaseId } = await servingHost();
  const refused = await connect(own.token.token, "second");
  expect(refused.status).toBe(409);
  expect(await refused.json()).toEqual({
    error: "Another agent with this host's token is connected: run only one",
  });
  expect((await site(key, siteId)).status).toBe("RUNNING");
  expect((await api(key, "GET", `/databases/${databaseId}`)).body).toMatchObject({ status: "RUNNING" });
  expect(own.waiting()).toEqual([]);
  own.close();
});

it("the operator reads of a second agent while it tries, and it gets no host whose own agent restarts", async () => {
  const { own, link, hear } = await servingHost();
  expect((await connect(own.token.token, "second")).status).toBe(409);
  expect(await hostRecord(own.hostId)).toMatchObject({ problems: [] });
  later(31);
  await hear();
  expect((await connect(own.token.token, "second")).status).toBe(409);
  expect((await hostRecord(own.hostId))?.problems).toEqual([
    expect.stringMatching(/^Another agent tries to connect with this host's token.* stop it there/),
  ]);
  own.close();
  await vi.waitUntil(async () => (await hostRecord(own.hostId))?.connected === false);
  expect((await connect(own.token.token, "second")).status).toBe(409);
  const restarted = await agent(own.token, "own restarted");
  restarted.send(hello());
  await restarted.next("welcome");
  expect((await hostRecord(own.hostId))?.problems).toHaveLength(1);
  later(61);
  await runDurableObjectAlarm(link);
  expect(await hostRecord(own.hostId)).toMatchObject({ problems: [] });
  restarted.close();
});

it("an agent that comes back takes over its own connection at once, and one that started anew once nothing comes from the former", async () => {
  const { own } = await servingHost();
  const again = await agent(own.token, "own");
  expect((await own.closed).code).toBe(4001);
  expect((await connect(own.token.token, "started anew")).status).toBe(409);
  later(26);
  const anew = await agent(own.token, "started anew");
  expect((await again.closed).code).toBe(4001);
  anew.close();
});

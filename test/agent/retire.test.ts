import { mkdirSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { openRetirement } from "../../agent/sites/retire.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { Host } from "../../agent/host.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { followSiteLog, keepLastLines, readSiteLog } from "../../agent/running/site-log.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let records: Records;
let removed: string[];
/** Containers that were stopped, and within how many seconds. */
let graces: string[];
/** A listener with a client: whoever has this process's sockets serves somebody. */
let server: net.Server;
let client: net.Socket;
/** Of the old container's process. One that is gone has no sockets. */
let pid: number;

beforeEach(async () => {
  folder = temporaryFolder();
  mkdirSync(join(folder, "work"));
  records = openRecords(join(folder, "running.db"));
  [removed, graces] = [[], []];
  pid = process.pid;
  await new Promise<void>((resolve) => void (server = net.createServer().listen(0, "127.0.0.1", resolve)));
  client = net.connect((server.address() as AddressInfo).port, "127.0.0.1");
  await new Promise((resolve) => client.once("connect", resolve));
});
afterEach(() => {
  pid = 0;
  client.destroy();
  server.close();
  records.close();
});

const secret = { env: ["KEY=hunter22"], labels: { "berth.secrets": "KEY" } };
function logOf(text: string): Buffer {
  const message = Buffer.from(`2026-01-01T00:00:0${text.startsWith("old") ? 1 : 2}.000000000Z ${text}\n`);
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(message.length, 4);
  return Buffer.concat([header, message]);
}

const labels = { "berth.site": "site_1", "berth.agent": "agent" };
/** An agent of a host with an old and a new container. A killed one gets no answers any more. */
function agentOf({ isKilled = (): boolean => false, drainMaxSeconds = 60, own = {} } = {}): Host {
  const answer = <T>(value: () => T) =>
    isKilled() ? new Promise<T>(() => undefined) : Promise.resolve(value());
  const engine = {
    listContainers: () =>
      answer(() =>
        ["old", "new"]
          .filter((id) => !removed.includes(id))
          .map((id) => ({ id, name: id, labels: { ...labels, ...own }, running: true })),
      ),
    inspectContainer: (id: string) =>
      answer(() =>
        removed.includes(id)
          ? null
          : {
              id,
              running: true,
              pid,
              labels: { ...labels, ...own, ...secret.labels },
              env: secret.env,
              addresses: {},
            },
      ),
    readLog: (id: string) =>
      answer(() => (removed.includes(id) ? Buffer.alloc(0) : logOf(`${id} has hunter22 and m4sked`))),
    stopContainer: (id: string, seconds: number) => answer(() => void graces.push(`${id} ${seconds}`)),
    removeContainer: (id: string) => answer(() => void removed.push(id)),
  } as unknown as Engine;
  return {
    agentId: "agent",
    engine,
    workDirectory: join(folder, "work"),
    ingress: {
      sites: () => [],
      lost: () => [],
      fallback: () => null,
      current: () => [{ containerId: "new", address: "10.0.0.2", port: 1 }],
    },
    ...openRetirement({
      engine,
      agentId: "agent",
      patience: { drainSeconds: 0.01, drainMaxSeconds },
      drains: records,
      keepLastLines: (id) => keepLastLines({ engine, records }, id),
      onError: (error) => expect.fail(String(error)),
    }),
  } as unknown as Host;
}

it("what an old version wrote last is in the site's log when its container is gone, without secrets and once", async () => {
  const host = agentOf();
  const logs = { engine: host.engine, agentId: "agent", records, onStart: () => undefined };
  const read = async (after: string | null = null) =>
    (await readSiteLog(logs, "site_1", { tail: 10, after, masks: ["m4sked"] })).map(({ text }) => text);
  const both = ["old has ••• and •••", "new has ••• and •••"];
  await keepLastLines({ engine: host.engine, records }, "old");
  expect(await read()).toEqual(both);
  client.destroy();
  pid = 0;
  host.retire("site_1", ["new"]);
  await host.retired();
  expect([removed, await read()]).toEqual([["old"], both]);
  expect(await read("2026-01-01T00:00:01Z")).toEqual(both.slice(1));
  const followed: string[] = [];
  const over = new AbortController();
  const asked = { tail: 0, after: "2026-01-01T00:00:00Z", masks: ["m4sked"] };
  await followSiteLog(logs, "site_1", asked, {
    signal: over.signal,
    deliver: (lines) => followed.push(...lines.map(({ text }) => text)),
    window: null,
    onAcknowledged: () => undefined,
  });
  await vi.waitUntil(() => followed.length > 0, 10_000);
  over.abort();
  expect(followed).toEqual(both.slice(0, 1));
  records.keepOnly([], new Date());
  expect(await read()).toEqual(both.slice(1));
});

describe("an old version that still serves somebody", () => {
  it("drains and stops as its site's lifecycle says, whatever the host's own limit is", async () => {
    const host = agentOf({ own: { "berth.drain": "1", "berth.stop-timeout": "45" } });
    const began = Date.now();
    host.retire("site_1", ["new"]);
    await vi.waitUntil(() => removed.length > 0, 10_000);
    expect(Date.now() - began).toBeGreaterThanOrEqual(1000);
    expect(graces).toEqual(["old 45"]);
    const short = agentOf({ drainMaxSeconds: 0.05, own: { "berth.drain": "3600" } });
    [removed, graces] = [[], []];
    short.retire("site_1", ["new"]);
    await vi.waitUntil(() => records.drainsUntil("old"), 10_000);
    expect(records.drainsUntil("old")?.getTime()).toBeGreaterThan(Date.now() + 3_000_000);
    pid = 0;
    await short.retired();
  });

  it("is waited for by an agent that is to be replaced, and goes when it has ended", async () => {
    const host = agentOf();
    host.retire("site_1", ["new"]);
    let isOver = false;
    const retired = host.retired().then(() => (isOver = true));
    await vi.waitUntil(() => records.drainsUntil("old"), 10_000);
    expect([isOver, removed]).toEqual([false, []]);
    pid = 0;
    await retired;
    expect(removed).toEqual(["old"]);
    expect(records.drainsUntil("old")).toBeNull();
  });

  it("is not cut by the next agent, which goes on with it", async () => {
    let isKilled = false;
    agentOf({ isKilled: () => isKilled }).retire("site_1", ["new"]);
    await vi.waitUntil(() => records.drainsUntil("old"), 10_000);
    isKilled = true;
    records.close();
    records = openRecords(join(folder, "running.db"));
    const next = agentOf();
    await sweep(next);
    expect(removed).toEqual([]);
    pid = 0;
    await next.retired();
    expect(removed).toEqual(["old"]);
  });

  it("is cut when its time is over, however many agents there were meanwhile", async () => {
    records.drainUntil("old", new Date(Date.now() - 1));
    records.drainUntil("old", new Date(Date.now() + 60_000));
    await sweep(agentOf());
    expect(removed).toEqual(["old"]);
  });

  it("is waited for no longer than the longest drain", async () => {
    const host = agentOf({ drainMaxSeconds: 0.02 });
    host.retire("site_1", ["new"]);
    await host.retired();
    expect(removed).toEqual(["old"]);
  });
});

it("an old version goes though the engine was away when its time was over", async () => {
  const host = agentOf({ drainMaxSeconds: 0.02 });
  const there = { ...host.engine };
  let refusals = 1;
  host.engine.inspectContainer = (id) =>
    refusals-- > 0 ? Promise.reject(new Error("connect ECONNREFUSED")) : there.inspectContainer(id);
  host.retire("site_1", ["new"]);
  await host.retired();
  expect(removed).toEqual(["old"]);
});

it("a container of which nothing says that it is to go is kept by the next agent", async () => {
  await sweep(agentOf());
  expect(removed).toEqual([]);
});

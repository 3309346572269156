import { beforeAll, describe, expect, it } from "vitest";
import type { Question } from "../../protocol/agent/running.ts";
import { app } from "../../worker/app.ts";
import type { Env } from "../../worker/env.ts";
import {
  account,
  api,
  bindings,
  readyAgent,
  runningSite,
  siteInput,
  siteUrl,
  uniqueName,
} from "./service.ts";

type Counts = { guard: number; d1: number };

/** The bindings, counting round trips; a hint to a host never ends, as it must hold up nothing. */
function countedEnv(counts: Counts): Env {
  const targets = new WeakMap<object, D1PreparedStatement>();
  const statement = (target: D1PreparedStatement): D1PreparedStatement => {
    const counted = {
      bind: (...values: unknown[]) => statement(target.bind(...values)),
      ...Object.fromEntries(
        (["all", "run", "first", "raw"] as const).map((name) => [
          name,
          (...args: never[]) => {
            counts.d1++;
            return (target[name] as (...args: never[]) => unknown)(...args);
          },
        ]),
      ),
    } as unknown as D1PreparedStatement;
    targets.set(counted, target);
    return counted;
  };
  const { DB, KEY_GUARD, HOST_LINK } = bindings;
  const answered = ({ kind }: Question) =>
    Promise.resolve({
      kind,
      ...{
        logs: { lines: [] },
        metrics: { samples: [] },
        events: { events: [] },
        volumes: { volumes: [] },
        removeVolume: {},
        insight: {},
        schema: {},
        query: {},
      }[kind],
    });
  const never = () => new Promise<never>(() => undefined);
  return {
    ...bindings,
    DB: {
      prepare: (sql: string) => statement(DB.prepare(sql)),
      batch: (list: D1PreparedStatement[]) => {
        counts.d1++;
        return DB.batch(list.map((one) => targets.get(one) ?? one));
      },
    } as D1Database,
    KEY_GUARD: {
      idFromName: (name: string) => KEY_GUARD.idFromName(name),
      get: (id: DurableObjectId) => ({
        check: (hash: string) => {
          counts.guard++;
          return KEY_GUARD.get(id).check(hash);
        },
      }),
    } as unknown as Env["KEY_GUARD"],
    HOST_LINK: {
      idFromName: (name: string) => HOST_LINK.idFromName(name),
      get: () => ({ wake: never, revise: never, ask: answered }),
    } as unknown as Env["HOST_LINK"],
  };
}

let key: string;
let siteId: string;
let invoiceId: string;
let deploymentId: string;

async function hops(method: string, path: string, body?: unknown): Promise<[status: number, Counts]> {
  const counts: Counts = { guard: 0, d1: 0 };
  const response = await app.fetch(
    new Request(`${siteUrl}/api/v1${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
    countedEnv(counts),
    { waitUntil: () => undefined, passThroughOnException: () => undefined } as unknown as ExecutionContext,
  );
  await response.body?.cancel();
  return [response.status, counts];
}

beforeAll(async () => {
  key = await account();
  ({ siteId, invoiceId } = await runningSite(key, await readyAgent()));
  const { body } = await api<{ data: { id: string }[] }>(key, "GET", `/sites/${siteId}/deployments`);
  deploymentId = body.data[0]?.id ?? "";
});

describe("a request with a key", () => {
  it("that reads costs one call of its guard and at most one round trip to D1", async () => {
    for (const path of [
      "/sites",
      `/sites/${siteId}`,
      `/sites/${siteId}/deployments`,
      `/sites/${siteId}/webhook`,
      `/sites/${siteId}/logs`,
      `/sites/${siteId}/metrics`,
      `/sites/${siteId}/events`,
      `/deployments/${deploymentId}`,
      `/deployments/${deploymentId}/logs`,
      "/invoices",
      `/invoices/${invoiceId}`,
    ])
      expect([path, ...(await hops("GET", path))]).toEqual([path, 200, { guard: 1, d1: 1 }]);
  });

  it("that writes costs one call of its guard and at most two round trips, and waits for no host", async () => {
    const name = `${uniqueName("hops")}.example.com`;
    const writes: [string, string, unknown?][] = [
      ["POST", "/sites", siteInput()],
      ["PATCH", `/sites/${siteId}`, { envVariables: [{ key: "A", value: "1" }] }],
      ["PATCH", `/sites/${siteId}`, { settings: { port: 4000 } }],
      ["PATCH", `/sites/${siteId}`, { domain: name }],
      ["PATCH", `/sites/${siteId}`, { domain: { remove: name } }],
      ["PATCH", `/sites/${siteId}`, { action: "restart" }],
      ["PATCH", `/sites/${siteId}`, { action: "deploy" }],
      ["POST", `/sites/${siteId}/rollback`, { deploymentId }],
      ["PATCH", `/sites/${siteId}`, { action: "stop" }],
      ["PATCH", `/sites/${siteId}`, { action: "start" }],
      ["POST", `/sites/${siteId}/webhook/rotate`],
      ["DELETE", `/sites/${siteId}`],
    ];
    for (const [method, path, body] of writes) {
      const [status, counts] = await hops(method, path, body);
      expect([body, status < 300, counts]).toEqual([body, true, { guard: 1, d1: 2 }]);
    }
  });

  it("that is refused for its key or its limit costs no round trip to D1 at all", async () => {
    const forged = key;
    key = `${forged.slice(0, -1)}${forged.endsWith("A") ? "B" : "A"}`;
    expect(await hops("GET", "/sites")).toEqual([401, { guard: 0, d1: 0 }]);
    key = forged;
    for (;;) {
      const [status, counts] = await hops("GET", "/sites?limit=1");
      if (status === 200) continue;
      expect([status, counts]).toEqual([429, { guard: 1, d1: 0 }]);
      break;
    }
  });
});

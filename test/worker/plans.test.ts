import { expect, it } from "vitest";
import { app } from "../../worker/app.ts";
import { contextOf } from "../../worker/compose.ts";
import type { Id } from "../../protocol/ids.ts";
import type { Env } from "../../worker/env.ts";
import worker from "../../worker/index.ts";
import { leaseJob } from "../../worker/jobs/lease.ts";
import { markOffline } from "../../worker/jobs/hosts/mark-offline.ts";
import { resyncHost } from "../../worker/jobs/resync.ts";
import { account, api, bindings, readyAgent, runningSite, siteInput, siteUrl } from "./service.ts";

/** Tables that stay small however long the service runs and however much it hosts. */
const small = [
  "hosts",
  "h",
  "packs",
  "CONSTANT",
  "v",
  // The versions of one site, ranked.
  "placed",
  // Accounts that somebody follows now, and what changed in them in the last minutes.
  "followed_accounts",
  "changes",
  "gone",
];

it("no statement of a request, a host's turn or a timer reads through a table that grows", async () => {
  const statements = new Set<string>();
  const recording: Env = {
    ...bindings,
    DB: {
      prepare: (sql: string) => {
        statements.add(sql);
        return bindings.DB.prepare(sql);
      },
      batch: (list: D1PreparedStatement[]) => bindings.DB.batch(list),
    } as D1Database,
  };
  const work: Promise<unknown>[] = [];
  const execution = {
    waitUntil: (promise: Promise<unknown>) => void work.push(promise),
    passThroughOnException: () => undefined,
  } as unknown as ExecutionContext;
  const key = await account();
  const agent = await readyAgent();
  const hostId = agent.hostId as Id<"host">;
  const { siteId, invoiceId } = await runningSite(key, agent);
  const { body: list } = await api<{ data: { id: string }[] }>(key, "GET", `/sites/${siteId}/deployments`);
  const { body: hook } = await api<{ url: string }>(key, "GET", `/sites/${siteId}/webhook`);
  const deploymentId = list.data[0]?.id;
  const request = async (method: string, path: string, body?: unknown) => {
    const url = path.startsWith("http") ? path : `${siteUrl}/api/v1${path}`;
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await app.fetch(new Request(url, init), recording, execution);
    expect([path, response.status < 300]).toEqual([path, true]);
    await response.body?.cancel();
  };
  for (const path of [
    "/sites",
    `/sites/${siteId}`,
    `/sites/${siteId}/deployments`,
    `/deployments/${deploymentId}`,
  ])
    await request("GET", path);
  for (const path of ["/invoices", `/invoices/${invoiceId}`]) await request("GET", path);
  await request("POST", "/sites", siteInput());
  await request("PATCH", `/sites/${siteId}`, { envVariables: [{ key: "A", value: "1" }] });
  await request("PATCH", `/sites/${siteId}`, { domain: "plans.example.com" });
  await request("PATCH", `/sites/${siteId}`, { action: "restart" });
  await request("POST", hook.url);
  await request("POST", `/sites/${siteId}/rollback`, { deploymentId });

  const ctx = contextOf(recording, { type: "host", hostId }, (promise) => void work.push(promise));
  await leaseJob(ctx, hostId);
  const facts = { cpuCount: 2, memoryMb: 4096 };
  await resyncHost(ctx, hostId, {
    agentVersion: "1",
    facts,
    slots: 0,
    lostSites: [],
    running: [],
    finished: [],
  });
  await markOffline(ctx, hostId, new Date(0));
  worker.scheduled({} as ScheduledController, recording, execution);
  await request("DELETE", `/sites/${siteId}`);
  while (work.length > 0) await Promise.all(work.splice(0));

  expect(statements.size).toBeGreaterThan(50);
  const scans: string[] = [];
  for (const sql of statements) {
    const bound = Array<null>(sql.split("?").length - 1).fill(null);
    const { results } = await bindings.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .bind(...bound)
      .all<{ detail: string }>();
    for (const { detail } of results) {
      // A list of JSON is as long as itself.
      if (detail.includes("VIRTUAL TABLE")) continue;
      // A partial index has only what waits.
      if (/USING (?:COVERING )?INDEX \w+_waiting$/.test(detail)) continue;
      const scanned = /^SCAN (\w+)/.exec(detail)?.[1];
      // What a WITH has found is as long as itself, too; its own parts are in the plan.
      if (scanned && sql.includes(`${scanned} AS (`)) continue;
      if (scanned && !small.includes(scanned)) scans.push(`${detail}: ${sql.replaceAll(/\s+/g, " ")}`);
    }
  }
  expect(scans).toEqual([]);
});

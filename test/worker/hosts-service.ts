import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { expect } from "vitest";
import type { Host } from "../../protocol/api/hosts.ts";
import worker from "../../worker/index.ts";
import {
  api,
  bindings,
  call,
  createSite,
  operator,
  pay,
  readyAgent,
  run,
  runningSite,
  site,
  uniqueName,
} from "./service.ts";

/** What the cron does each minute. */
export async function tick(): Promise<void> {
  const execution = createExecutionContext();
  worker.scheduled({} as ScheduledController, bindings, execution);
  await waitOnExecutionContext(execution);
}

export const sql = run;

/** An agent of a new host with room for `sites` of the smallest pack. */
export async function hostFor(sites: number, region?: string) {
  const { body } = await api<{ id: string; token: string }>(await operator(), "POST", "/hosts", {
    name: uniqueName("room"),
    ...(region && { region }),
  });
  return readyAgent(10, body, { cpuCount: 2, memoryMb: 512 + sites * 256 });
}

export const drain = async ({ hostId }: { hostId: string }): Promise<Host> =>
  (await api<Host>(await operator(), "PATCH", `/hosts/${hostId}`, { action: "drain" })).body;

/** Its link has ended, and the host's object has heard of it: that comes a moment later. */
export const foundOffline = (hostId: string) =>
  expect
    .poll(async () => (await sql("SELECT offline_since AS since FROM hosts WHERE id = ?", hostId)).results)
    .not.toEqual([{ since: null }]);

export async function hostRecord(id: string): Promise<Host> {
  const { body } = await api<{ data: Host[] }>(await operator(), "GET", "/hosts");
  const found = body.data.find((host) => host.id === id);
  if (!found) throw new Error(`no host ${id}`);
  return found;
}

export async function paidSites(key: string, count: number, overrides: Record<string, unknown> = {}) {
  const made = [];
  for (let index = 0; index < count; index++) made.push(await createSite(key, overrides));
  // All begin to pay before one has its room.
  const begins = { method: "POST", headers: { Accept: "text/html" }, redirect: "manual" } as const;
  for (const { invoiceToken } of made) await call(`/invoice/${invoiceToken}/pay`, begins);
  await Promise.all(made.map(({ invoiceToken }) => pay(invoiceToken)));
  return made.map(({ siteId }) => siteId);
}

/** A site on this host that kept exiting. */
export async function failedSite(
  key: string,
  on: Awaited<ReturnType<typeof hostFor>>,
  overrides: Record<string, unknown> = {},
) {
  const { siteId } = await runningSite(key, on, overrides);
  const deploymentId = (await site(key, siteId)).currentDeployment?.id;
  on.send({ type: "crashed", siteId, deploymentId, error: "It kept exiting." });
  await on.next("crashAck");
  expect((await site(key, siteId)).status).toBe("FAILED");
  return siteId;
}
/** Hosts and work of earlier tests are out of the way. */
export async function clearAway(): Promise<void> {
  await sql("UPDATE hosts SET status = 'REMOVED'");
  await sql("UPDATE jobs SET status = 'CANCELLED' WHERE status IN ('QUEUED', 'LEASED')");
  await sql("UPDATE sites SET status = 'FAILED' WHERE status IN ('DEPLOYING', 'DELETING')");
}

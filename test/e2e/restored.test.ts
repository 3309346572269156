import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import type { Backup } from "../../protocol/api/backups.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import type { Host, SetAsideList } from "../../protocol/api/hosts.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import {
  api,
  createSite,
  launch,
  local,
  pay,
  plainServer,
  redeploy,
  remove,
  Repository,
  request,
  settled,
  site,
  stateDirectory,
  until,
} from "./service.ts";

const state = join(stateDirectory, "state");
/** The record alone: other Durable Objects, backups and hosts go on, as with D1's Time Travel. */
const record = join(state, "do", "berth-EmbeddedDatabase");
const copies = { before: join(state, "..", "tmp", "d1-before"), after: join(state, "..", "tmp", "d1-after") };

const processes = () =>
  JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
    "agent" | "control-plane",
    number
  >;
const supervisorOf = (id: number) =>
  Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]);

/** While nobody starts the control plane again; then it is up and the host has connected. */
async function whileStopped(work: () => void): Promise<void> {
  const { "control-plane": controlPlane } = processes();
  const supervisor = supervisorOf(controlPlane);
  process.kill(supervisor, "SIGSTOP");
  try {
    process.kill(-controlPlane, "SIGKILL");
    await until(
      () => request(`${local.siteUrl}/health`).catch(() => null),
      (answer) => answer === null,
    );
    work();
  } finally {
    process.kill(supervisor, "SIGCONT");
  }
  await until(
    async () => (await request(`${local.siteUrl}/health`).catch(() => null))?.status,
    (status) => status === 200,
  );
}
const copyTo = (copy: string) => cpSync(record, copy, { recursive: true });
function putBack(copy: string): void {
  rmSync(record, { recursive: true });
  cpSync(copy, record, { recursive: true });
}

const read = async (id: string) => (await api<Database>("GET", `/databases/${id}`)).body;
const textOf = async (url: string) => (await request(url).catch(() => null))?.text;
const statusOf = async (url: string) => (await request(url).catch(() => null))?.status;
const setAside = async () => {
  const { data } = (await api<Page<Host>>("GET", "/hosts")).body;
  const host = data.find(({ status }) => status === "ACTIVE");
  return {
    path: `/hosts/${host?.id}/set-aside`,
    ...(await api<SetAsideList>("GET", `/hosts/${host?.id}/set-aside`)),
  };
};

beforeAll(() => ensureImages(["redis:7.2"]), 15 * 60_000);

it("a record that is put back to an earlier moment is true after one round, and nothing is lost of what it forgot", async () => {
  const repository = new Repository(plainServer("one"));
  const githubUrl = repository.address;
  const [deleted, stopped, deployed] = [
    await launch({ githubUrl }),
    await launch({ githubUrl }),
    await launch({ githubUrl }),
  ];
  const unpaid = await createSite({ githubUrl });
  const input = { name: `e2e-restored-${process.pid}`, type: "redis" };
  const { body: made } = await api<DatabaseCreated>("POST", "/databases", input);
  await pay(made.invoiceToken);
  await until(
    () => read(made.databaseId),
    ({ status }) => status === "RUNNING",
  );
  const { body: backup } = await api<Backup>("POST", `/databases/${made.databaseId}/backups`);
  await until(
    async () => (await api<Backup>("GET", `/backups/${backup.id}`)).body.status,
    (status) => status === "VERIFIED",
  );

  await whileStopped(() => copyTo(copies.before));
  await api("DELETE", `/databases/${made.databaseId}`);
  await remove(deleted.id);
  await api("PATCH", `/sites/${stopped.id}`, { action: "stop" });
  repository.commit(plainServer("two"), "Second");
  expect((await redeploy(deployed.id)).status).toBe("LIVE");
  await pay(unpaid.invoiceToken);
  const paid = await settled(unpaid.siteId);
  const created = await launch({ githubUrl });
  await until(
    async () => (await api("GET", `/databases/${made.databaseId}`)).status,
    (status) => status === 404,
  );
  expect([
    await textOf(deployed.url),
    await textOf(paid.url),
    await textOf(created.url),
    await statusOf(stopped.url),
  ]).toEqual(["version two", "version two", "version two", 503]);

  await whileStopped(() => {
    copyTo(copies.after);
    putBack(copies.before);
  });
  const lost = await until(
    () => site(deleted.id),
    ({ status }) => status === "FAILED",
  );
  expect(lost.latestDeployment?.error).toMatch(/no longer on the host: deploy the site again/);
  await until(
    () => textOf(stopped.url),
    (text) => text === "version one",
  );
  await until(
    () => textOf(deployed.url),
    (text) => text === "version one",
  );
  // Another deployment brings what it forgot.
  for (const { id } of [stopped, deployed]) expect(await site(id)).toMatchObject({ status: "RUNNING" });
  await until(
    () => statusOf(paid.url),
    (status) => status === 404,
  );
  await until(
    () => statusOf(created.url),
    (status) => status === 404,
  );
  const kept = await until(
    setAside,
    ({ status, body }) =>
      status === 200 && body.data.length === 2 && body.data.every(({ running }) => !running),
  );
  expect(kept.body.data.map(({ id }) => id).toSorted()).toEqual([created.id, paid.id].toSorted());
  expect(await read(made.databaseId)).toMatchObject({
    status: "FAILED",
    error: expect.stringMatching(/data is no longer on its host\. Restore a backup/) as string,
  });

  // The ways on: what is deployed, restored or paid again is there again.
  expect((await redeploy(deleted.id)).status).toBe("LIVE");
  await api("POST", `/databases/${made.databaseId}/restore`, { backupId: backup.id });
  await until(
    () => read(made.databaseId),
    ({ status }) => status === "RUNNING",
  );
  await pay(unpaid.invoiceToken);
  expect(await settled(unpaid.siteId)).toMatchObject({ status: "RUNNING" });
  expect(await textOf(paid.url)).toBe("version two");
  expect((await api("GET", "/ledger/verify")).body).toMatchObject({ ok: true });

  // The later record after all: what it names is had back from where it was kept.
  await whileStopped(() => putBack(copies.after));
  await until(
    () => textOf(created.url),
    (text) => text === "version two",
  );
  await until(
    () => statusOf(stopped.url),
    (status) => status === 503,
  );
  const again = await until(setAside, ({ body }) => body.data?.every(({ running }) => !running));
  expect(again.body.data.map(({ id }) => id).toSorted()).toEqual([deleted.id, made.databaseId].toSorted());
  for (const { id } of again.body.data) expect((await api("DELETE", `${again.path}/${id}`)).status).toBe(200);
  for (const { id } of [stopped, deployed, paid, created]) await remove(id);
  expect((await setAside()).body.data).toEqual([]);
  const left = execFileSync("docker", [
    "ps",
    "--all",
    "--quiet",
    "--filter",
    `label=berth.database=${made.databaseId}`,
  ]);
  expect(left.toString()).toBe("");
  repository.remove();
  expect(readdirSync(record).length).toBeGreaterThan(0);
});

it("a table of the ingress that is wrong ends no site, and visitors reach it again once the agent has connected", async () => {
  const repository = new Repository(plainServer("kept"));
  const { id, url } = await launch({ githubUrl: repository.address });
  const containersOf = () =>
    execFileSync("docker", ["ps", "--quiet", "--no-trunc", "--filter", `label=berth.site=${id}`]).toString();
  const before = containersOf();
  const table = join(stateDirectory, "agent", "ingress", "routes.json");
  const { agent } = processes();
  const supervisor = supervisorOf(agent);
  process.kill(supervisor, "SIGSTOP");
  try {
    process.kill(agent, "SIGKILL");
    writeFileSync(table, JSON.stringify({ version: Date.now(), sites: {} }));
    await until(
      () => statusOf(url),
      (status) => status === 404,
    );
  } finally {
    process.kill(supervisor, "SIGCONT");
  }
  await until(
    () => textOf(url),
    (text) => text === "version kept",
  );
  expect(containersOf()).toBe(before);
  await until(
    () => textOf(local.sampleSite.url),
    (text) => text !== undefined,
  );
  await remove(id);
  repository.remove();
});

it("a database whose container is gone runs again by itself; one whose volume is gone as well says so", async () => {
  const { body: made } = await api<DatabaseCreated>("POST", "/databases", {
    name: `e2e-gone-${process.pid}`,
    type: "redis",
  });
  await pay(made.invoiceToken);
  const status = async () => (await read(made.databaseId)).status;
  await until(status, (now) => now === "RUNNING");
  const name = `berth-${made.databaseId}`;
  const runs = () => execFileSync("docker", ["ps", "--quiet", "--filter", `name=^${name}$`]).toString();
  execFileSync("docker", ["rm", "--force", name]);
  await until(runs, (id) => id !== "");
  expect(await status()).toBe("RUNNING");
  await until(
    async () => (await read(made.databaseId)).updatedAt,
    (at) => Date.now() - Date.parse(at) > 3000,
  );
  execFileSync("docker", ["rm", "--force", name]);
  execFileSync("docker", ["volume", "rm", `${name}-data`]);
  await until(status, (now) => now === "FAILED");
  await api("DELETE", `/databases/${made.databaseId}`);
  await until(
    async () => (await api("GET", `/databases/${made.databaseId}`)).status,
    (now) => now === 404,
  );
});

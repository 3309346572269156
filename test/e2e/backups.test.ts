import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Backup, BackupLink } from "../../protocol/api/backups.ts";
import type { Page } from "../../protocol/api/common.ts";
import type { Database, DatabaseCreated } from "../../protocol/api/databases.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { api, pay, stateDirectory, until } from "./service.ts";

const made: string[] = [];
const read = async (id: string) => (await api<Database>("GET", `/databases/${id}`)).body;
const list = async (id: string) => (await api<Page<Backup>>("GET", `/backups?databaseId=${id}`)).body.data;

async function launchDatabase(name: string): Promise<Database> {
  const input = { name: `e2e-${name}-${process.pid}`, type: "postgresql" };
  const { body } = await api<DatabaseCreated>("POST", "/databases", input);
  made.push(body.databaseId);
  await pay(body.invoiceToken);
  return until(
    () => read(body.databaseId),
    ({ status }) => status === "RUNNING",
  );
}

/** As Berth's own user, over the server's own socket. */
function ask({ id, databaseName }: Database, statement: string): string {
  const filter = ["--filter", `label=berth.database=${id}`];
  const container = execFileSync("docker", ["ps", "--quiet", ...filter], { encoding: "utf8" }).trim();
  const psql = ["psql", "--username=berth", `--dbname=${databaseName}`, "-qAt", "--set=ON_ERROR_STOP=1"];
  return execFileSync("docker", ["exec", "--interactive", container, ...psql], {
    encoding: "utf8",
    input: statement,
    stdio: ["pipe", "pipe", "ignore"],
  }).trim();
}

async function backUp(database: Database): Promise<Backup> {
  const { status, body } = await api<Backup>("POST", `/databases/${database.id}/backups`);
  expect(status).toBe(202);
  return ended(body.id);
}
const ended = (id: string): Promise<Backup> =>
  until(
    async () => (await api<Backup>("GET", `/backups/${id}`)).body,
    ({ status }) => status === "VERIFIED" || status === "FAILED",
  );

/** Accepted, and over when no job holds up the next. */
async function restore(database: Database, backupId: string): Promise<void> {
  const accepted = await api("POST", `/databases/${database.id}/restore`, { backupId });
  expect(accepted.status).toBe(202);
}

beforeAll(() => ensureImages(["postgres:17"]), 15 * 60_000);
afterAll(async () => {
  for (const id of made) {
    await api("DELETE", `/databases/${id}`);
    await until(
      async () => (await api("GET", `/databases/${id}`)).status,
      (status) => status === 404,
    );
  }
});

const rows = "SELECT count(*), md5(string_agg(word, ',' ORDER BY word)) FROM kept";

it("a database is backed up, proven, downloaded, brought back after a loss, and outlived by its backups", async () => {
  const database = await launchDatabase("backups");
  ask(
    database,
    `SET ROLE ${database.databaseName}; CREATE TABLE kept AS SELECT md5(random()::text) AS word FROM generate_series(1, 600000)`,
  );
  const before = ask(database, rows);
  const backup = await backUp(database);
  expect(backup).toMatchObject({ status: "VERIFIED", error: null, rows: 600_000 });
  // More than one part.
  expect(backup.sizeBytes).toBeGreaterThan(8 * 1024 * 1024);

  const { body: link } = await api<BackupLink>("POST", `/backups/${backup.id}/link`);
  const file = new Uint8Array(await (await fetch(link.url)).arrayBuffer());
  expect([file.length, createHash("sha256").update(file).digest("hex")]).toEqual([
    backup.sizeBytes,
    backup.sha256,
  ]);
  const part = await fetch(link.url, { headers: { Range: "bytes=5-9" } });
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(file.slice(5, 10));

  ask(database, "DROP TABLE kept");
  // The agent is killed while it works on it: the next one brings it to its end.
  await restore(database, backup.id);
  const processes = JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<
    string,
    number
  >;
  process.kill(processes["agent"] ?? 0, "SIGKILL");
  const after = await until(
    async () => {
      try {
        return ask(database, rows);
      } catch {
        return "";
      }
    },
    (answer) => answer === before,
  );
  expect(after).toBe(before);
  expect((await list(database.id)).map(({ trigger }) => trigger)).toEqual(["before-restore", "api"]);

  const other = await launchDatabase("other");
  await restore(other, backup.id);
  await until(
    async () => {
      try {
        return ask(other, rows);
      } catch {
        return "";
      }
    },
    (answer) => answer === before,
  );
  expect((await read(other.id)).status).toBe("RUNNING");

  // Deleted while the host makes it: nothing of it is left, and the next one is good.
  const { body: unwanted } = await api<Backup>("POST", `/databases/${database.id}/backups`);
  expect((await api("DELETE", `/backups/${unwanted.id}`)).status).toBe(202);
  expect((await api("GET", `/backups/${unwanted.id}`)).status).toBe(404);
  await until(
    async () => (await api("POST", `/databases/${database.id}/backups`)).status,
    (status) => status === 202,
  );
  const [wanted] = await list(database.id);
  expect(await ended(wanted?.id ?? "")).toMatchObject({ status: "VERIFIED", rows: 600_000 });

  await api("DELETE", `/databases/${database.id}`);
  await until(
    async () => (await api("GET", `/databases/${database.id}`)).status,
    (status) => status === 404,
  );
  const [last] = await list(database.id);
  expect(last).toMatchObject({ trigger: "final", expiresAt: expect.any(String) });
  expect(await ended(last?.id ?? "")).toMatchObject({ status: "VERIFIED", rows: 600_000 });
});

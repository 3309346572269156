import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PartServer } from "../test/support/part-server.ts";
import { closedAccess } from "../test/support/closed-access.ts";
import { jobRun } from "../test/support/job-run.ts";
import { containerName } from "../agent/docker/database-objects.ts";
import { createEngine } from "../agent/docker/client.ts";
import { provisionDatabase } from "../agent/handlers/provision-database.ts";
import { deleteDatabase } from "../agent/handlers/delete-database.ts";
import type { Host } from "../agent/host.ts";
import type { DatabaseSpec } from "../protocol/agent/jobs.ts";
import { formatId } from "../protocol/ids.ts";
import { ensureImages } from "../scripts/lib/base-images.ts";
import { smallMalloc, smallNode } from "../scripts/lib/supervisor.ts";
import { median } from "./median.ts";

/**
 * A backup of a PostgreSQL database by the agent, in its own process, against the same dump piped into a file by
 * hand, in alternation. The agent also counts and hashes every row, splits the dump into parts, hashes them and sends
 * them over HTTP.
 */
const sizeMb = Number(process.env["BENCH_BACKUP_MB"] ?? 1024);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3);

const socketPath = process.env["DOCKER_HOST"]?.replace("unix://", "") ?? "/var/run/docker.sock";
const agentId = randomBytes(8).toString("hex");
const newId = <K extends "account" | "database" | "backup">(kind: K) =>
  formatId(kind, Date.now(), randomBytes(10));
const server = new PartServer();
server.discards = true;
const url = await server.listen();
const database: DatabaseSpec = {
  databaseId: newId("database"),
  accountId: newId("account"),
  type: "postgresql",
  image: "postgres:17",
  hostname: "bench.internal",
  databaseName: "bench_data",
  adminPassword: randomBytes(12).toString("hex"),
  logins: [{ username: "bench_data_1", password: randomBytes(12).toString("hex") }],
  limits: { memoryMb: 1024, cpuMilli: 2000, pids: 256 },
};
const host = {
  agentId,
  engine: createEngine({ socketPath }),
  isolation: { demand: async () => undefined },
  buildRoom: { demandDisk: async () => undefined },
  publicAccess: closedAccess(agentId),
} as unknown as Host;
const run = jobRun();
const name = containerName(database.databaseId);
const folder = mkdtempSync(join(tmpdir(), "bench-backups-"));

function byHand(): number {
  const started = performance.now();
  const dump = `docker exec ${name} pg_dump --username=berth --dbname=bench_data --format=custom --compress=1 --no-owner --no-privileges`;
  execFileSync("sh", ["-c", `${dump} > ${join(folder, "dump")}`]);
  return performance.now() - started;
}

async function byAgent(): Promise<{ ms: number; roseBytes: number }> {
  const args = { database, backupId: newId("backup"), attempt: 1, serving: true };
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      ...smallNode,
      join(import.meta.dirname, "../test/support/backup-child.ts"),
    ],
    {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        ...smallMalloc,
        BACKUP: JSON.stringify({ socketPath, url, token: server.token, agentId, args }),
      },
    },
  );
  let text = "";
  for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  return JSON.parse(text) as { ms: number; roseBytes: number };
}

try {
  await ensureImages(["postgres:17"]);
  await provisionDatabase(host, { database }, run);
  const filler = `CREATE TABLE filler AS SELECT n AS id, now() AS at, md5(n::text) || repeat(md5((n / 10)::text), 20) AS text FROM generate_series(1, ${Math.round(sizeMb * 1440)}) n; CHECKPOINT;`;
  execFileSync(
    "docker",
    ["exec", "--interactive", name, "psql", "--username=berth", "--dbname=bench_data", "--quiet"],
    {
      input: filler,
      stdio: ["pipe", "ignore", "inherit"],
    },
  );
  const size = execFileSync(
    "docker",
    [
      "exec",
      name,
      "psql",
      "--username=berth",
      "--dbname=bench_data",
      "-qAtc",
      "SELECT pg_database_size('bench_data') / 1048576",
    ],
    { encoding: "utf8" },
  ).trim();
  byHand();
  const [hand, agent, rose]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    hand.push(byHand());
    const { ms, roseBytes } = await byAgent();
    agent.push(ms);
    rose.push(roseBytes / 1024 / 1024);
    await delay(500);
  }
  const speed = median(hand) / median(agent);
  console.log(
    `database ${size} MiB, dump by hand ${Math.round(median(hand))} ms, backup by the agent ${Math.round(median(agent))} ms`,
  );
  console.log(`speed of the agent: ${(speed * 100).toFixed(0)} % of by hand (at least 70 %)`);
  console.log(`memory of the agent rose by ${Math.max(...rose).toFixed(0)} MiB at most (less than 64 MiB)`);
  if (speed < 0.7 || Math.max(...rose) >= 64) process.exitCode = 1;
} finally {
  await deleteDatabase(host, database, run);
  rmSync(folder, { recursive: true, force: true });
  server.close();
}

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createStore } from "../../agent/databases/backups/store.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import { handle } from "../../agent/handlers/index.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { Host } from "../../agent/host.ts";
import type { DatabaseSpec, Job, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseAgent } from "../support/database-host.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { docker, engine as machineEngine, newId, socketPath } from "../support/engine.ts";
import { jobRun } from "../support/job-run.ts";
import { keepLogs, logSays } from "../support/orderly-ends.ts";
import { PartServer } from "../support/part-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { engine, removed } = keepLogs(machineEngine);
const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const server = new PartServer();
const url = await server.listen();
const emptyFolder = temporaryFolder();
const backups = createStore({ url, token: server.token });
const host = databaseAgent({ agentId, engine, backups, workDirectory: emptyFolder });

const specs: DatabaseSpec[] = [];
function specOf(type: DatabaseSpec["type"], name: string = type): DatabaseSpec {
  const spec = databaseSpec({ databaseId: newId("database"), accountId, type }, name);
  specs.push(spec);
  return spec;
}

const neverAborted = new AbortController().signal;
function does<K extends JobKind>(
  kind: K,
  args: object,
  signal = neverAborted,
  id = newId("job"),
): Promise<JobResult<K>> {
  const run = jobRun({ jobId: id, signal });
  return handle(host, { id, kind, args } as unknown as Job, run) as Promise<JobResult<K>>;
}

async function backUp(spec: DatabaseSpec, signal?: AbortSignal): Promise<string> {
  const backupId = newId("backup");
  await does("database.backup", { database: spec, backupId, attempt: 1, serving: true }, signal);
  return backupId;
}
const verify = (spec: DatabaseSpec, backupId: string, stored = server.stored(backupId, spec.databaseName)) =>
  does("database.verify", {
    like: {
      ...spec,
      adminPassword: "other",
      logins: [{ username: `${spec.databaseName}_0`, password: "other" }],
    },
    backup: stored,
  });
/** What the control plane does with the result: the record names the new volume, and the server is started again. */
async function restore(spec: DatabaseSpec, backupId: string, from = spec) {
  const backup = server.stored(backupId, from.databaseName);
  const result = await does("database.restore", { database: spec, backup, serving: true });
  if (result.damage === null) {
    const replacedVolumes = [spec.volume ?? null];
    spec.volume = result.volume;
    await does("database.start", { database: spec, replacedVolumes });
  }
  return result;
}

/** As the owner, over the container's own socket; what is asked and made differs by engine. */
type Client = {
  command(spec: DatabaseSpec): string[];
  fill: string;
  change: string;
  lose: string;
  read: string;
};
const clients: Record<DatabaseSpec["type"], Client> = {
  postgresql: {
    command: ({ databaseName, logins: [login] }) => [
      "psql",
      `--username=${login?.username}`,
      `--dbname=${databaseName}`,
      "--set=ON_ERROR_STOP=1",
      "-qAt",
    ],
    // Begun anew in the usual way, which takes along what Berth keeps in that schema.
    fill: `
      DROP SCHEMA public CASCADE; CREATE SCHEMA public;
      CREATE EXTENSION pgcrypto;
      CREATE TYPE mood AS ENUM ('sad', 'glad');
      CREATE SCHEMA "odd ""schema";
      CREATE TABLE "odd ""schema"."line
break" (a int);
      INSERT INTO "odd ""schema"."line
break" VALUES (1), (1), (NULL);
      CREATE TABLE items (id bigserial PRIMARY KEY, word text COLLATE "C" UNIQUE, at timestamptz DEFAULT '2026-01-02 03:04:05+06', price numeric, ratio float8, raw bytea, mood mood, doc jsonb, twice numeric GENERATED ALWAYS AS (price * 2) STORED);
      INSERT INTO items (word, price, ratio, raw, mood, doc) SELECT 'word ' || n, n / 7.0, random(), decode(md5(n::text), 'hex'), 'glad', json_build_object('n', n)::jsonb FROM generate_series(1, 5000) n;
      CREATE TABLE parts (id int, at date) PARTITION BY RANGE (at);
      CREATE TABLE parts_2026 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
      INSERT INTO parts VALUES (1, '2026-05-05');
      CREATE VIEW words AS SELECT word FROM items;
      CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM items;
      CREATE FUNCTION shout(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT upper($1)';
      CREATE INDEX ON items (shout(word));
      ALTER TABLE items ADD CONSTRAINT positive CHECK (shout(word) <> '');
      COMMENT ON TABLE items IS 'what is sold';
      SELECT lo_from_bytea(0, 'large');
      CREATE SEQUENCE spare INCREMENT 5; SELECT nextval('spare');
      CREATE UNLOGGED TABLE fragile AS SELECT n FROM generate_series(1, 10) n;
      INSERT INTO items (word) VALUES ('after the refresh');`,
    change: "INSERT INTO items (word) VALUES ('later')",
    lose: "DROP TABLE items CASCADE",
    read: "SELECT count(*), max(id), md5(string_agg(items::text, ';' ORDER BY id)), (SELECT last_value FROM spare), obj_description('items'::regclass), (SELECT count(*) FROM fragile) FROM items",
  },
  mysql: {
    command: ({ databaseName, logins: [login] }) => [
      "mariadb",
      `--user=${login?.username}`,
      `--password=${login?.password}`,
      "--protocol=tcp",
      "--host=127.0.0.1",
      "--batch",
      "--raw",
      "--skip-column-names",
      databaseName,
    ],
    fill: `
      CREATE TABLE \`odd \`\`name\` (a INT NULL);
      INSERT INTO \`odd \`\`name\` VALUES (1), (1), (NULL);
      CREATE TABLE items (id BIGINT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(100) UNIQUE, at TIMESTAMP DEFAULT '2026-01-02 03:04:05', price DECIMAL(20, 6), ratio DOUBLE, raw VARBINARY(100), doc JSON, flag BIT(3), twice DECIMAL(20, 6) AS (price * 2) STORED);
      INSERT INTO items (word, price, ratio, raw, doc, flag) SELECT CONCAT('word é ', seq), seq / 7, RAND(), UNHEX(MD5(seq)), JSON_OBJECT('n', seq), seq % 8 FROM seq_1_to_5000;
      CREATE VIEW words AS SELECT word FROM items;
      CREATE FUNCTION shout(t VARCHAR(100)) RETURNS VARCHAR(100) DETERMINISTIC RETURN UPPER(t);
      CREATE TRIGGER marked BEFORE INSERT ON items FOR EACH ROW SET NEW.word = CONCAT(NEW.word, '!');
      CREATE SEQUENCE spare INCREMENT 5; SELECT NEXTVAL(spare);`,
    change: "INSERT INTO items (word) VALUES ('later')",
    lose: "DROP TABLE items",
    read: "SELECT COUNT(*), SUM(CRC32(CONCAT_WS(',', id, word, at, price, ratio, HEX(raw), doc, HEX(flag), twice))), (SELECT COUNT(*) FROM words), shout('a') FROM items",
  },
  redis: {
    command: ({ logins: [login] }) => [
      "redis-cli",
      "--user",
      login?.username ?? "",
      "--pass",
      login?.password ?? "",
      "--no-auth-warning",
    ],
    fill: [
      ...Array.from({ length: 500 }, (_, n) => `SET word:${n} ${"x".repeat(n % 50)}`),
      "RPUSH list a b c",
      "HSET hash field value",
      "SET soon gone PX 1",
      "SET later gone EX 3600",
      "SELECT 3",
      "SADD set a b",
    ].join("\n"),
    change: "SET added later",
    lose: "FLUSHALL",
    // Asked for first, what has expired goes: until then it would be counted.
    read: "PTTL soon\nDBSIZE\nLRANGE list 0 -1\nGET word:49\nSELECT 3\nSCARD set",
  },
};

async function ask(spec: DatabaseSpec, statements: string): Promise<string> {
  const client = clients[spec.type];
  const { exitCode, stdout, stderr } = await engine.execute(containerName(spec.databaseId), {
    command: client.command(spec),
    input: `${statements}\n`,
  });
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

const processesOf = (spec: DatabaseSpec) => docker("top", containerName(spec.databaseId), "-eo", "pid,args");
const copies = () =>
  docker(
    "ps",
    "--all",
    "--quiet",
    "--filter",
    `label=berth.agent=${agentId}`,
    "--filter",
    "label=berth.copy",
  );
const volumesOf = async (spec: DatabaseSpec) =>
  (await docker("volume", "ls", "--quiet", "--filter", `label=berth.database=${spec.databaseId}`))
    .split("\n")
    .filter(Boolean);

beforeAll(() => ensureImages(databaseImages), 15 * 60_000);
afterAll(async () => {
  for (const spec of specs) await does("database.delete", spec);
  server.close();
  rmdirSync(emptyFolder);
  expect(await docker("volume", "ls", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
  expect(await docker("ps", "--all", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
});

describe.each(["postgresql", "mysql", "redis"] as const)("a %s database", (type) => {
  const spec = specOf(type);
  const other = specOf(type, `${type}2`);
  const { fill, change, lose, read } = clients[type];
  let backupId: string;
  let before: string;

  it("is backed up in parts, and the backup is proven in a server of its own that leaves nothing", async () => {
    await does("database.provision", { database: spec });
    await ask(spec, fill);
    before = await ask(spec, read);
    backupId = await backUp(spec);
    expect(await verify(spec, backupId)).toEqual({ damage: null });
    expect(await copies()).toBe("");
    const { manifest } = server.found(backupId);
    expect(manifest.fingerprint.tables.length).toBeGreaterThan(1);
    expect(await ask(spec, read)).toBe(before);
  });

  it("that lost its data is what it was after a restore, on a new volume and with the same login", async () => {
    await ask(spec, lose);
    removed.length = 0;
    expect(await restore(spec, backupId)).toMatchObject({ damage: null, version: expect.any(String) });
    expect(await ask(spec, read)).toBe(before);
    // The one that was filled, and the one whose place it took.
    expect(removed.length).toBe(2);
    for (const { log } of removed) expect(log).toMatch(logSays[type].ended);
    await ask(spec, change);
    expect(await volumesOf(spec)).toEqual([expect.stringContaining(spec.volume ?? "none")]);
    expect(await copies()).toBe("");
    // What was restored can be backed up, and verified, in its turn.
    expect(await verify(spec, await backUp(spec))).toEqual({ damage: null });
    await does("database.restart", { database: spec });
    await ask(spec, read);
  });

  it("can be restored into another database, whose own login then owns it", async () => {
    await does("database.provision", { database: other });
    expect(await restore(other, backupId, spec)).toMatchObject({ damage: null });
    expect(await ask(other, read)).toBe(before);
    await ask(other, change);
    await ask(other, lose);
  });

  it("whose backup has a flipped bit, lost a byte or is another's is refused, and the data stays", async () => {
    const foreign = await backUp(other);
    const now = await ask(spec, read);
    const { data, manifest } = server.found(backupId);
    const record = server.stored(backupId, spec.databaseName);
    const flipped = Buffer.from(data);
    flipped[Math.floor(data.length / 2)]! ^= 4;
    const { tables } = manifest.fingerprint;
    const counted = {
      ...manifest.fingerprint,
      tables: tables.map((table, n) => (n === 0 ? { ...table, rows: "7" } : table)),
    };
    const spoilt = [
      [{ data: flipped, manifest }, /SHA-256 differs|could not be restored|did not load/],
      [{ data: data.subarray(0, -1), manifest }, /bytes/],
      [{ ...server.found(foreign), manifest }, /bytes|SHA-256/],
      [server.found(foreign), /not the one that was stored/],
      [{ data, manifest: { ...manifest, fingerprint: counted } }, /not the one that was stored/],
    ] as const;
    for (const [kept, says] of spoilt) {
      server.kept.set(backupId, kept);
      expect((await verify(spec, backupId, record)).damage).toMatch(says);
      const refused = await does("database.restore", { database: spec, backup: record, serving: true });
      expect(refused.damage).toMatch(says);
      expect(await ask(spec, read)).toBe(now);
    }
    server.kept.set(backupId, { data, manifest });
    // The record itself says other contents than the file has: only the comparison can tell.
    const { fingerprintText } = await import("../../protocol/agent/backups.ts");
    const { createHash } = await import("node:crypto");
    server.kept.set(backupId, { data, manifest: { ...manifest, fingerprint: counted } });
    const fingerprintSha256 = createHash("sha256").update(fingerprintText(counted)).digest("hex");
    expect((await verify(spec, backupId, { ...record, fingerprintSha256 })).damage).toMatch(/instead of 7/);
    server.kept.set(backupId, { data, manifest });
    expect([await copies(), (await volumesOf(spec)).length]).toEqual(["", 1]);
  });
});

describe("a backup", () => {
  const spec = specOf("postgresql", "stalled");
  const rows =
    "CREATE TABLE big AS SELECT md5(n::text) || md5((-n)::text) AS word FROM generate_series(1, 600000) n";

  it("goes on after broken connections and failing servers, part by part", async () => {
    await does("database.provision", { database: spec });
    await ask(spec, rows);
    let failures = 0;
    server.disturb = (request, response) => {
      if (failures >= 6 || !/parts|data|complete|upload/.test(request.url ?? "")) return false;
      if (++failures % 2 === 0) request.socket.destroy();
      else response.writeHead(503).end();
      return true;
    };
    const id = await backUp(spec);
    failures = 4;
    expect(await verify(spec, id)).toEqual({ damage: null });
    server.disturb = () => false;
    expect(server.found(id).data.length).toBeGreaterThan(2 * server.partBytesMax);
  });

  it("that is stopped half-way leaves no dump running, and no backup", async () => {
    const stop = new AbortController();
    server.disturb = (request) => {
      if (!request.url?.includes("parts")) return false;
      stop.abort(new Error("stopped"));
      return true;
    };
    await expect(backUp(spec, stop.signal)).rejects.toThrow("stopped");
    server.disturb = () => false;
    expect(await processesOf(spec)).not.toMatch(/pg_dump|psql/);
    expect(
      await ask(spec, "SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('pg_dump')"),
    ).toBe("0");
  });

  it("whose agent is killed in the middle of the dump leaves none running once an agent is there again", async () => {
    let stalled: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (stalled = resolve));
    server.disturb = (request) => {
      if (!request.url?.includes("parts")) return false;
      stalled();
      return true;
    };
    const backupId = newId("backup");
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", "test/support/backup-child.ts"],
      {
        stdio: "inherit",
        env: {
          ...process.env,
          BACKUP: JSON.stringify({
            socketPath,
            url,
            token: server.token,
            agentId,
            args: { database: spec, backupId, attempt: 1, serving: true },
          }),
        },
      },
    );
    const exited = new Promise<never>((_, reject) => child.once("exit", () => reject(new Error("it ended"))));
    await Promise.race([reached, exited]);
    child.kill("SIGKILL");
    await expect(exited).rejects.toThrow("it ended");
    server.disturb = () => false;
    expect(server.kept.has(backupId)).toBe(false);
    await sweep(host);
    for (const end = Date.now() + 10_000; /pg_dump|psql/.test(await processesOf(spec)); await delay(100))
      expect(Date.now()).toBeLessThan(end);
    expect(await verify(spec, await backUp(spec))).toEqual({ damage: null });
  });

  it("that restores when the disk is full fails as the host's fault, and the data stays", async () => {
    const id = await backUp(spec);
    const full = {
      ...host,
      buildRoom: { demandDisk: async () => Promise.reject(new Error("This host has too little disk")) },
    } as unknown as Host;
    const job = newId("job");
    const args = { database: spec, backup: server.stored(id, spec.databaseName), serving: true };
    const run = jobRun({ jobId: job, signal: neverAborted });
    await expect(handle(full, { id: job, kind: "database.restore", args }, run)).rejects.toThrow(/disk/);
    expect(await ask(spec, "SELECT count(*) FROM big")).toBe("600000");
    expect((await volumesOf(spec)).length).toBe(1);
  });

  it("restored by an agent that ends half-way leaves the old data serving; the next attempt brings the new", async () => {
    const id = await backUp(spec);
    await ask(spec, "DELETE FROM big");
    const stop = new AbortController();
    server.disturb = (request) => {
      if (!request.url?.endsWith("/data")) return false;
      stop.abort(new Error("ended"));
      return true;
    };
    const jobId = newId("job");
    const args = { database: spec, backup: server.stored(id, spec.databaseName), serving: true };
    await expect(does("database.restore", args, stop.signal, jobId)).rejects.toThrow();
    server.disturb = () => false;
    expect(await ask(spec, "SELECT count(*) FROM big")).toBe("0");
    expect((await does("database.restore", args, neverAborted, jobId)).damage).toBeNull();
    // Changed over, but cut off before it could say so: the same job again changes nothing.
    expect((await does("database.restore", args, neverAborted, jobId)).damage).toBeNull();
    expect(await ask({ ...spec, volume: jobId }, "SELECT count(*) FROM big")).toBe("600000");
    // The record never heard of it: the old volume is still there, and the new one is kept.
    await does("database.start", { database: spec });
    expect(await ask(spec, "SELECT count(*) FROM big")).toBe("0");
    expect((await volumesOf(spec)).length).toBe(2);
  });
});

import { randomBytes } from "node:crypto";
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createStore } from "../../agent/databases/backups/store.ts";
import { containerName, databaseLabels, volumeName } from "../../agent/docker/database-objects.ts";
import { handle } from "../../agent/handlers/index.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { Host } from "../../agent/host.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { databaseCrashes, databasesStillOut } from "../../agent/running/databases-out.ts";
import { DiskUse } from "../../agent/running/disk-use.ts";
import { openRecords } from "../../agent/running/records.ts";
import { watchSites } from "../../agent/running/watch.ts";
import type { DatabaseSpec, Job, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseAgent } from "../support/database-host.ts";
import { databaseSpec } from "../support/database-spec.ts";
import { docker, engine, execute, newId } from "../support/engine.ts";
import { jobRun } from "../support/job-run.ts";
import { PartServer } from "../support/part-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { databaseExits } from "../../agent/databases/exits.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = newId("account");
const server = new PartServer();
const url = await server.listen();
const folder = temporaryFolder();
const emptyFolder = temporaryFolder();
const records = openRecords(join(folder, "running.db"));
const ingress = { sites: () => [], current: () => null } as unknown as Ingress;
const backups = createStore({ url, token: server.token });
const host = databaseAgent({ agentId, backups, workDirectory: emptyFolder, ingress });

const specs: DatabaseSpec[] = [];
const disks: string[] = [];
const stop = new AbortController();
const neverAborted = new AbortController().signal;

function specOf(type: DatabaseSpec["type"], name: string): DatabaseSpec {
  const spec = databaseSpec({ databaseId: newId("database"), accountId, type }, name);
  specs.push(spec);
  return spec;
}

function does<K extends JobKind>(
  kind: K,
  args: object,
  { on = host, signal = neverAborted, id = newId("job") } = {},
): Promise<JobResult<K>> {
  const run = jobRun({ jobId: id, signal });
  return handle(on, { id, kind, args } as unknown as Job, run) as Promise<JobResult<K>>;
}

async function backUp(spec: DatabaseSpec): Promise<string> {
  const backupId = newId("backup");
  await does(
    "database.backup",
    { database: spec, backupId, attempt: 1, serving: true },
    { signal: neverAborted },
  );
  return backupId;
}
const verify = (spec: DatabaseSpec, backupId: string) =>
  does("database.verify", { like: spec, backup: server.stored(backupId, spec.databaseName) });

/** `big`: so many megabytes; `broken`: a file of its data without which the server does not start. */
type Client = {
  command(spec: DatabaseSpec): string[];
  write: string;
  read: string;
  big: (megabytes: number) => string;
  broken: string;
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
    write: "CREATE TABLE IF NOT EXISTS kept (word text); INSERT INTO kept VALUES ('kept');",
    read: "SELECT count(*) FROM kept;",
    big: (megabytes) =>
      `CREATE TABLE big AS SELECT n, md5(n::text) AS word FROM generate_series(1, ${megabytes * 15_000}) n;`,
    broken: "global/pg_control",
  },
  mysql: {
    command: ({ databaseName, logins: [login] }) => [
      "mariadb",
      `--user=${login?.username}`,
      `--password=${login?.password}`,
      "--protocol=tcp",
      "--host=127.0.0.1",
      "--batch",
      "--skip-column-names",
      databaseName,
    ],
    write: "CREATE TABLE IF NOT EXISTS kept (word text); INSERT INTO kept VALUES ('kept');",
    read: "SELECT count(*) FROM kept;",
    big: (megabytes) =>
      `CREATE TABLE big (n INT PRIMARY KEY, word VARCHAR(2000)); INSERT INTO big SELECT seq, REPEAT(MD5(seq), 31) FROM seq_1_to_${megabytes * 1000};`,
    broken: "ibdata1",
  },
  redis: {
    command: ({ logins: [login] }) => [
      "redis-cli",
      "-e",
      "--user",
      login?.username ?? "",
      "--pass",
      login?.password ?? "",
      "--no-auth-warning",
    ],
    write: "RPUSH kept kept",
    read: "LLEN kept",
    big: (megabytes) =>
      Array.from(
        { length: megabytes },
        (_, n) => `SET big:${n} ${randomBytes(750_000).toString("base64")}`,
      ).join("\n"),
    broken: "appendonlydir/appendonly.aof.manifest",
  },
};

async function ask(spec: DatabaseSpec, statements: string): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.execute(containerName(spec.databaseId), {
    command: clients[spec.type].command(spec),
    input: `${statements}\n`,
  });
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}
const inspect = (spec: DatabaseSpec) => engine.inspectContainer(containerName(spec.databaseId));
const volumesOf = ({ databaseId }: DatabaseSpec) => engine.volumes({ "berth.database": databaseId });
const copies = () =>
  docker("ps", "-aq", "--filter", `label=berth.agent=${agentId}`, "--filter", "label=berth.copy");
async function kill(spec: DatabaseSpec): Promise<void> {
  process.kill((await inspect(spec))!.pid, "SIGKILL");
}
const crashOf = async ({ databaseId }: DatabaseSpec) =>
  (await databaseCrashes({ engine, records })).find((crash) => crash.databaseId === databaseId);
const isOut = (spec: DatabaseSpec) =>
  vi.waitFor(
    async () => {
      const crash = await crashOf(spec);
      if (!crash) throw new Error("it is not out");
      return crash;
    },
    { timeout: 90_000, interval: 100 },
  );

/** A file system of its own, on a disk of its own, for the files of one volume. */
async function smallVolume(spec: DatabaseSpec, name: string, megabytes: number): Promise<string> {
  const place = mkdtempSync(join(tmpdir(), "berth-disk-"));
  const image = join(folder, `${name}.img`);
  writeFileSync(image, "");
  truncateSync(image, megabytes * 1024 * 1024);
  await execute("mkfs.ext4", ["-q", "-m", "0", "-N", "4096", image]);
  await execute("mount", ["-o", "loop", image, place]);
  disks.push(place);
  rmdirSync(join(place, "lost+found"));
  const options = ["type=none", "o=bind", `device=${place}`].flatMap((option) => ["--opt", option]);
  const labels = Object.entries(databaseLabels(agentId, spec.databaseId, accountId));
  const labelled = labels.flatMap(([key, value]) => ["--label", `${key}=${value}`]);
  await docker("volume", "create", ...options, ...labelled, name);
  return place;
}
const fill = (place: string) =>
  execute("dd", ["if=/dev/zero", `of=${place}/filler`, "bs=4k"]).catch(() => "full");

beforeAll(async () => {
  await ensureImages(databaseImages);
  const nothing = () => undefined;
  const watched = { engine, ingress, records, agentId, out: new Set<string>() };
  watchSites(
    {
      ...watched,
      onStart: nothing,
      onEnd: nothing,
      onConnect: nothing,
      onCrash: nothing,
      databaseExits: databaseExits(engine),
      onDatabaseOut: nothing,
    },
    stop.signal,
  );
}, 15 * 60_000);
afterAll(async () => {
  stop.abort();
  for (const spec of specs) await does("database.delete", spec);
  server.close();
  for (const place of disks) {
    await execute("umount", [place]);
    rmdirSync(place);
  }
  records.close();
  rmdirSync(emptyFolder);
  expect(await docker("volume", "ls", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
  expect(await docker("ps", "--all", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
});

describe.each(["postgresql", "mysql", "redis"] as const)("a %s server that cannot start any more", (type) => {
  const spec = specOf(type, `${type}out`);
  const { write, read, broken } = clients[type];

  it("is stopped after five tries, with the reason and its log, and stays so until it is mended and started", async () => {
    await does("database.provision", { database: spec });
    await ask(spec, write);
    const [volume] = await volumesOf(spec);
    const file = join(volume?.folder ?? "", broken);
    copyFileSync(file, join(folder, type));
    const { uid, gid } = statSync(file);
    writeFileSync(file, "this is no file of the server's\n".repeat(100));
    await kill(spec);
    const { error } = await isOut(spec);
    expect(error).toMatch(/^The database's server exited 5 times within a minute.* Its last lines: ./s);
    for (const { password } of [{ password: spec.adminPassword }, ...spec.logins])
      expect(error).not.toContain(password);
    // The engine's word that it was stopped may come after; nothing else does.
    const others = records.events(spec.databaseId).filter(({ kind }) => kind !== "stop");
    expect(others.at(-1)).toMatchObject({ kind: "crash_loop" });
    // Neither the engine nor an agent that begins anew starts it.
    await sweep(host, await databasesStillOut({ engine, records }));
    expect(await inspect(spec)).toMatchObject({ running: false });
    expect(await engine.lastLines(containerName(spec.databaseId), 5)).not.toEqual([]);
    await expect(does("database.start", { database: spec })).rejects.toThrow(/ended when it started/);
    copyFileSync(join(folder, type), file);
    await execute("chown", [`${uid}:${gid}`, file]);
    await does("database.restart", { database: spec });
    expect(await ask(spec, read)).toBe("1");
    expect(await crashOf(spec)).toBeUndefined();
    // It is one that is to run again.
    await docker("stop", containerName(spec.databaseId));
    await sweep(host, await databasesStillOut({ engine, records }));
    expect(await inspect(spec)).toMatchObject({ running: true });
  });

  it("is what its backup holds after a restore, also while the record says that it serves", async () => {
    await does("database.start", { database: spec });
    const backup = server.stored(await backUp(spec), spec.databaseName);
    const [old] = await volumesOf(spec);
    writeFileSync(join(old?.folder ?? "", broken), "this is no file of the server's\n".repeat(100));
    await kill(spec);
    await isOut(spec);
    const result = await does("database.restore", { database: spec, backup, serving: true });
    if (result.damage !== null) throw new Error(result.damage);
    spec.volume = result.volume;
    expect(await ask(spec, read)).toBe("1");
    expect(await volumesOf(spec)).toContainEqual(expect.objectContaining({ name: old?.name }));
  });
});

it.each(["postgresql", "mysql", "redis"] as const)(
  "a %s server whose volume was emptied under it is not begun anew by the engine: it is out, with the reason",
  async (type) => {
    const spec = specOf(type, `${type}emptied`);
    await does("database.provision", { database: spec });
    await ask(spec, clients[type].write);
    const place = (await volumesOf(spec))[0]?.folder ?? "";
    for (const name of readdirSync(place)) rmSync(join(place, name), { recursive: true });
    await kill(spec);
    expect((await isOut(spec)).error).toMatch(/Its data is not on this host: restore a backup into it/);
    expect(readdirSync(place)).toEqual([]);
    await expect(does("database.start", { database: spec })).rejects.toThrow(/Its data is not on this host/);
  },
);

describe("a postgresql server that was killed while it made its lock, and left an empty one", () => {
  const spec = specOf("postgresql", "halflocked");
  const { write, read } = clients.postgresql;
  const lock = async () => join((await volumesOf(spec))[0]?.folder ?? "", "postmaster.pid");
  const stoppedWithEmptyLock = async () => {
    await docker("stop", containerName(spec.databaseId));
    writeFileSync(await lock(), "");
  };

  it("runs again by itself, after the engine has tried in vain", async () => {
    await does("database.provision", { database: spec });
    await ask(spec, write);
    truncateSync(await lock());
    await kill(spec);
    await vi.waitFor(async () => expect(await ask(spec, read)).toBe("1"), { timeout: 60_000, interval: 250 });
    expect(await crashOf(spec)).toBeUndefined();
  });

  it("runs again when its owner starts it, and with the agent", async () => {
    await stoppedWithEmptyLock();
    await does("database.start", { database: spec });
    expect(await ask(spec, read)).toBe("1");
    await stoppedWithEmptyLock();
    await sweep(host);
    await vi.waitFor(async () => expect(await ask(spec, read)).toBe("1"), { timeout: 30_000, interval: 250 });
    expect(records.events(spec.databaseId).at(-1)).toMatchObject({ kind: "start" });
  });
});

it("a database that holds more than its pack is told so, is backed up, and is measured as less when it gave room back", async () => {
  const spec = specOf("mysql", "large");
  await does("database.provision", { database: spec });
  const use = new DiskUse({
    engine,
    ingress,
    records,
    databases: async () => new Map(),
  });
  const usedMb = async () => {
    await use.of(spec.databaseId, -1);
    return use.databases().find(({ databaseId }) => databaseId === spec.databaseId)?.usedMb ?? Number.NaN;
  };
  const full = () => records.events(spec.databaseId).filter(({ kind }) => kind === "disk_full");
  // Its own logs have grown once.
  await ask(spec, `${clients.mysql.big(120)} DROP TABLE big;`);
  const before = await usedMb();
  expect(before).toBeGreaterThan(1);
  spec.limits.diskGb = (before + 40) / 1024;
  await does("database.restart", { database: spec });
  await usedMb();
  expect(full()).toEqual([]);
  await ask(spec, clients.mysql.big(80));
  expect(await usedMb()).toBeGreaterThan(before + 60);
  expect(full()).toHaveLength(1);
  expect(await verify(spec, await backUp(spec))).toEqual({ damage: null });
  await ask(spec, "DELETE FROM big WHERE n > 1000; OPTIMIZE TABLE big;");
  await vi.waitFor(async () => expect(await usedMb()).toBeLessThan(before + 40), { timeout: 30_000 });
});

describe("a server whose disk is full", () => {
  it("and that ended cannot start: it is stopped, its disk is named, and it has every row when there is room again", async () => {
    const spec = specOf("postgresql", "fullout");
    const place = await smallVolume(spec, volumeName(spec.databaseId), 200);
    await does("database.provision", { database: spec });
    await ask(spec, clients.postgresql.write);
    await fill(place);
    // A log of changes that cannot be written ends the server.
    const next = "CREATE TABLE more (n int); SELECT pg_switch_wal();";
    const command = ["psql", "--username=berth", `--dbname=${spec.databaseName}`];
    for (let n = 0; n < 20 && !(await crashOf(spec)); n++)
      await engine
        .execute(containerName(spec.databaseId), { command, input: next.replace("more", `more${n}`) })
        .catch(() => "it does not run");
    expect((await isOut(spec)).error).toMatch(/host's disk is full: ask the operator to make room/);
    await expect(does("database.start", { database: spec })).rejects.toThrow(/host's disk is full/);
    rmSync(join(place, "filler"));
    await does("database.restart", { database: spec });
    expect(await ask(spec, clients.postgresql.read)).toBe("1");
  });
});

describe.each(["postgresql", "mysql", "redis"] as const)("a %s database on a full disk", (type) => {
  const spec = specOf(type, `${type}full`);
  const { write, read, big } = clients[type];
  let place: string;
  let backupId: string;

  it("is backed up, or says that the disk is full; either way it has what it had", async () => {
    place = await smallVolume(spec, volumeName(spec.databaseId), 350);
    await does("database.provision", { database: spec });
    await ask(spec, write);
    await ask(spec, big(60));
    backupId = await backUp(spec);
    await fill(place);
    const onFull = await backUp(spec).catch((error: Error) => error.message);
    const said = /disk is full: ask the operator to make room, then back it up/;
    // Only one always writes its copy to its own disk first.
    if (type === "redis") expect(onFull).toMatch(said);
    else if (!said.test(onFull)) expect(await verify(spec, onFull)).toEqual({ damage: null });
    rmSync(join(place, "filler"));
    expect(await ask(spec, read)).toBe("1");
    expect(await verify(spec, await backUp(spec))).toEqual({ damage: null });
  });

  it("whose restore finds no room fails with that reason, serves on with its data and leaves nothing", async () => {
    const id = newId("job");
    const small = volumeName(spec.databaseId, id);
    const tooFew = { postgresql: 90, mysql: 130, redis: 40 }[type];
    let made: Promise<unknown> | undefined;
    const on = {
      ...host,
      engine: {
        ...engine,
        ensureVolume: (name: string, labels: Record<string, string>) =>
          name === small ? (made ??= smallVolume(spec, name, tooFew)) : engine.ensureVolume(name, labels),
      },
    } as unknown as Host;
    const pid = (await inspect(spec))?.pid;
    const args = { database: spec, backup: server.stored(backupId, spec.databaseName), serving: true };
    await expect(does("database.restore", args, { on, id })).rejects.toThrow(
      /host's disk is full: ask the operator to make room/,
    );
    expect((await inspect(spec))?.pid).toBe(pid);
    expect(await ask(spec, read)).toBe("1");
    await ask(spec, write);
    expect([await copies(), (await volumesOf(spec)).length]).toEqual(["", 1]);
    // With room, the same backup is restored.
    await does("database.restore", args);
  });
});

it("a redis backup that is cancelled while the server saves ends that, leaves no file, and the server goes on", async () => {
  const spec = specOf("redis", "cancelled");
  await does("database.provision", { database: spec });
  await ask(spec, clients.redis.big(60));
  const cancel = new AbortController();
  const on = {
    ...host,
    engine: {
      ...engine,
      execute: async (id: string, program: Parameters<typeof engine.execute>[1]) => {
        const said = await engine.execute(id, program);
        if (said.stdout.includes("Background saving started")) cancel.abort(new Error("Cancelled."));
        return said;
      },
    },
  };
  const args = { database: spec, backupId: newId("backup"), attempt: 1, serving: true };
  await expect(does("database.backup", args, { on, signal: cancel.signal })).rejects.toThrow("Cancelled.");
  const [volume] = await volumesOf(spec);
  await vi.waitFor(
    () => expect(readdirSync(volume?.folder ?? "").filter((name) => name.endsWith(".rdb"))).toEqual([]),
    10_000,
  );
  expect(server.kept.has(args.backupId)).toBe(false);
  await ask(spec, clients.redis.write);
  expect(await verify(spec, await backUp(spec))).toEqual({ damage: null });
});

it.each(["postgresql", "redis"] as const)(
  "a verification of %s that is cancelled leaves no container",
  async (type) => {
    const spec = specOf(type, `${type}unproven`);
    await does("database.provision", { database: spec });
    await ask(spec, clients[type].write);
    const backupId = await backUp(spec);
    const cancel = new AbortController();
    server.disturb = (request) => {
      if (request.url?.endsWith("/data")) cancel.abort(new Error("Cancelled."));
      return false;
    };
    const args = { like: spec, backup: server.stored(backupId, spec.databaseName) };
    await expect(does("database.verify", args, { signal: cancel.signal })).rejects.toThrow("Cancelled.");
    server.disturb = () => false;
    expect(await copies()).toBe("");
  },
);

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { containerName, databaseLabels, volumeName } from "../../agent/docker/database-objects.ts";
import { countServed, socketTables } from "../../agent/docker/listening.ts";
import { networkName } from "../../agent/docker/specs.ts";
import { handle } from "../../agent/handlers/index.ts";
import { sweep } from "../../agent/startup/sweep.ts";
import type { DatabaseSpec, Job } from "../../protocol/agent/jobs.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseSpec, testedImages } from "../support/database-spec.ts";
import { databaseAgent } from "../support/database-host.ts";
import { docker, engine as machineEngine, execute } from "../support/engine.ts";
import { jobRun } from "../support/job-run.ts";
import { keepLogs, logOf, logSays } from "../support/orderly-ends.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { engine, removed } = keepLogs(machineEngine);
const agentId = randomBytes(8).toString("hex");
const accountId = `acc_${agentId}`;
const emptyFolder = temporaryFolder();
const host = databaseAgent({ agentId, engine, workDirectory: emptyFolder });

const specs: DatabaseSpec[] = [];
const disks: string[] = [];
type Login = DatabaseSpec["logins"][number];
const loginOf = (name: string, generation: number): Login => ({
  username: `${name}_${generation}`,
  password: randomBytes(12).toString("hex"),
});

function specOf(type: DatabaseSpec["type"], name: string = type): DatabaseSpec {
  const ids = { databaseId: `db_${name}${agentId}`, accountId } as Pick<
    DatabaseSpec,
    "databaseId" | "accountId"
  >;
  const spec = databaseSpec({ ...ids, type }, name);
  specs.push(spec);
  return spec;
}

const job = jobRun();
const does = (kind: Job["kind"], spec: DatabaseSpec) =>
  handle(host, { id: "job_test", kind, args: { ...spec, database: spec } } as unknown as Job, job);

/** What a site of the account could do: the official client, in a container of the account's network. */
type Client = {
  command(spec: DatabaseSpec, login: Login, statement: string): string[];
  write: string;
  read: string;
  /** Keeps its connection open for ten seconds. */
  linger: string;
  /** Makes what only an end in order keeps whole, and tells whether it is. */
  fragile: [make: string, ask: string, whole: string];
  /** Writes until it is cut off. */
  load: string;
  /** What only the server's own user may do. */
  forbidden: string;
  tuned: [ask: string, says: RegExp];
};
const clients: Record<DatabaseSpec["type"], Client> = {
  postgresql: {
    command: ({ hostname, databaseName }, { username, password }, statement) => [
      "psql",
      `postgresql://${username}:${password}@${hostname}:5432/${databaseName}`,
      "-v",
      "ON_ERROR_STOP=1",
      "-qAt",
      "-c",
      statement,
    ],
    write: "CREATE TABLE IF NOT EXISTS kept (word text); INSERT INTO kept VALUES ('kept')",
    read: "SELECT count(*) FROM kept",
    linger: "SELECT pg_sleep(10)",
    fragile: [
      "CREATE UNLOGGED TABLE fragile AS SELECT 1",
      "SELECT count(*), (SELECT n_tup_ins > 0 FROM pg_stat_user_tables WHERE relname = 'fragile') FROM fragile",
      "1|t",
    ],
    // One statement: of several, none may commit.
    load: "DO $$ BEGIN CREATE TABLE IF NOT EXISTS load (n int); LOOP INSERT INTO load VALUES (1); COMMIT; END LOOP; END $$",
    forbidden: "ALTER SYSTEM SET shared_buffers = '1GB'",
    tuned: [
      "SELECT current_setting('shared_buffers'), (SELECT rolconnlimit FROM pg_roles WHERE rolname = session_user), count(*) > 0 FROM pg_stat_statements",
      /^64MB\|32\|t$/,
    ],
  },
  mysql: {
    command: ({ hostname, databaseName }, { username, password }, statement) => [
      "mariadb",
      `--host=${hostname}`,
      `--user=${username}`,
      `--password=${password}`,
      "--batch",
      "--skip-column-names",
      databaseName,
      `--execute=${statement}`,
    ],
    write: "CREATE TABLE IF NOT EXISTS kept (word text); INSERT INTO kept VALUES ('kept')",
    read: "SELECT count(*) FROM kept",
    linger: "SELECT SLEEP(10)",
    fragile: [
      "CREATE TABLE fragile (n INT) ENGINE=MyISAM; INSERT INTO fragile VALUES (1)",
      "CHECK TABLE fragile FAST",
      "mysql_data.fragile\tcheck\tstatus\tTable is already up to date",
    ],
    load: "INSERT INTO fragile SELECT seq FROM seq_1_to_1000000000",
    forbidden: "SET GLOBAL max_connections = 1",
    tuned: ["SELECT @@innodb_buffer_pool_size DIV 1048576, @@max_user_connections", /^1\d\d\t32$/],
  },
  redis: {
    command: ({ hostname }, { username, password }, statement) => [
      "redis-cli",
      "-e",
      "-u",
      `redis://${username}:${password}@${hostname}:6379/0`,
      ...statement.split(" "),
    ],
    write: "RPUSH kept kept",
    read: "LLEN kept",
    linger: "BLPOP nothing 10",
    fragile: ["SET fragile 1", "GET fragile", "1"],
    load: "-r 1000000 RPUSH load 1",
    forbidden: "CONFIG GET maxmemory",
    tuned: ["INFO memory", /maxmemory_human:192\.00M[^]*maxmemory_policy:noeviction/],
  },
};

async function ask(spec: DatabaseSpec, login: Login, statement: string): Promise<string> {
  const [program = "", ...args] = clients[spec.type].command(spec, login, statement);
  const network = ["--network", networkName(accountId), "--label", `berth.test=${agentId}`];
  return docker("run", "--rm", ...network, "--entrypoint", program, spec.image, ...args);
}
const first = (spec: DatabaseSpec) => spec.logins[0]!;

/** A server that starts again takes a moment. */
async function askUntilUp(spec: DatabaseSpec, statement: string): Promise<string> {
  for (const end = Date.now() + 60_000; ;) {
    const answer = await ask(spec, first(spec), statement).catch((error: Error) => error);
    if (typeof answer === "string") return answer;
    if (Date.now() > end) throw answer;
    await delay(200);
  }
}

beforeAll(() => ensureImages(Object.values(testedImages)), 15 * 60_000);
afterAll(async () => {
  for (const spec of specs) await does("database.delete", spec);
  rmdirSync(emptyFolder);
  for (const folder of disks) {
    await execute("umount", [folder]);
    rmdirSync(folder);
  }
  const left = await docker("volume", "ls", "--quiet", "--filter", `label=berth.agent=${agentId}`);
  expect(left).toBe("");
  expect(await docker("ps", "--all", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
});

/** A file system of its own, so small that it can be filled, as the place of the volume's files. */
async function smallVolume(spec: DatabaseSpec, megabytes: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "berth-disk-"));
  await execute("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder]);
  disks.push(folder);
  const options = ["type=none", "o=bind", `device=${folder}`].flatMap((option) => ["--opt", option]);
  const labels = Object.entries(databaseLabels(agentId, spec.databaseId, accountId));
  const labelled = labels.flatMap(([name, value]) => ["--label", `${name}=${value}`]);
  await docker("volume", "create", ...options, ...labelled, volumeName(spec.databaseId));
  return folder;
}
const leftOf = async ({ databaseId }: DatabaseSpec) =>
  (await docker("ps", "--all", "--quiet", "--filter", `label=berth.database=${databaseId}`)) +
  (await docker("volume", "ls", "--quiet", "--filter", `label=berth.database=${databaseId}`));

describe("a disk that is full", () => {
  it("costs a PostgreSQL database none of the rows it confirmed, and it goes on when there is room again", async () => {
    const spec = specOf("postgresql", "full");
    const folder = await smallVolume(spec, 150);
    await does("database.provision", spec);
    await ask(spec, first(spec), "CREATE TABLE kept (word text)");
    await execute("dd", ["if=/dev/zero", `of=${folder}/filler`, "bs=1M"]).catch(() => "full");
    await execute("truncate", ["--size=-4M", `${folder}/filler`]);
    let confirmed = 0;
    const insert = "INSERT INTO kept SELECT string_agg(md5(n::text), '') FROM generate_series(1, 20000) n";
    const refusal = await (async () => {
      for (;;) {
        await ask(spec, first(spec), insert);
        confirmed++;
      }
    })().catch((error: Error) => error.message);
    expect(refusal).toMatch(/No space left on device|server closed the connection|could not connect/);
    rmSync(join(folder, "filler"));
    expect(await askUntilUp(spec, "SELECT count(*) FROM kept")).toBe(String(confirmed));
    await ask(spec, first(spec), insert);
    expect(await ask(spec, first(spec), "SELECT count(*) FROM kept")).toBe(String(confirmed + 1));
  });

  it("ends a provisioning with a reason, and leaves nothing", async () => {
    const spec = specOf("postgresql", "small");
    await smallVolume(spec, 8);
    await expect(does("database.provision", spec)).rejects.toThrow(/disk is full.*No space left on device/s);
    expect(await leftOf(spec)).toBe("");
  });
});

it("an image that cannot be had ends a provisioning with a reason, and leaves nothing", async () => {
  const spec = { ...specOf("redis", "missing"), image: "berth.invalid/redis:0" };
  await expect(does("database.provision", spec)).rejects.toThrow(/could not get berth\.invalid\/redis:0/);
  expect(await leftOf(spec)).toBe("");
});

it("a rotation is held up by no lock of a customer's: it ends with a reason, and the old login is out", async () => {
  const spec = specOf("postgresql", "locked");
  const old = first(spec);
  const next = loginOf(spec.databaseName, 2);
  await does("database.provision", spec);
  await does("database.rotate", { ...spec, logins: [old, next] });
  await ask(spec, old, "SET ROLE NONE; CREATE TABLE held (word text); GRANT ALL ON held TO PUBLIC");
  const locked = ask(spec, next, "BEGIN; LOCK TABLE held; SELECT pg_sleep(300)").catch(() => "cut");
  const locks =
    "SELECT count(*) FROM pg_locks WHERE relation = 'held'::regclass AND mode = 'AccessExclusiveLock'";
  await vi.waitUntil(async () => (await ask(spec, next, locks)) === "1", { timeout: 20_000, interval: 100 });
  await expect(does("database.rotate", { ...spec, logins: [next] })).rejects.toThrow(
    /logins could not be set: try again, or restart the database first/,
  );
  await expect(ask(spec, old, "SELECT 1")).rejects.toThrow();
  await does("database.restart", { ...spec, logins: [next] });
  expect(await locked).toBe("cut");
  expect(await ask(spec, next, "SELECT count(*) FROM held")).toBe("0");
});

it("what a PostgreSQL database's owner makes or sets gives no right over the server, and holds up no rotation or restart", async () => {
  const spec = specOf("postgresql", "owned");
  const old = first(spec);
  const next = loginOf(spec.databaseName, 2);
  await does("database.provision", spec);
  await ask(
    spec,
    old,
    `CREATE FUNCTION format(text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
       EXECUTE 'ALTER ROLE ${next.username} SUPERUSER'; RETURN pg_catalog.format($1, $2); END $$`,
  );
  await ask(spec, old, `ALTER DATABASE ${spec.databaseName} SET default_transaction_read_only = on`);
  await does("database.rotate", { ...spec, logins: [next] });
  expect(await ask(spec, next, "SELECT rolname FROM pg_roles WHERE rolsuper")).toBe("berth");
  await ask(spec, next, "BEGIN READ WRITE; DROP SCHEMA public CASCADE; COMMIT");
  await does("database.restart", { ...spec, logins: [next] });
  expect(await ask(spec, next, "SELECT 1")).toBe("1");
});

describe.each(["postgresql", "mysql", "redis"] as const)("a %s database", (type) => {
  const spec = specOf(type);
  const { write, read, linger, fragile, load, forbidden, tuned } = clients[type];
  const inspect = async () => (await engine.inspectContainer(containerName(spec.databaseId)))!;

  it("is provisioned for a login that owns it and not the server, and tells its version", async () => {
    const { version } = (await does("database.provision", spec)) as { version: string };
    expect(version).toMatch(/^\d+\.\d+/);
    await ask(spec, first(spec), write);
    expect(await ask(spec, first(spec), read)).toBe("1");
    await expect(ask(spec, first(spec), forbidden)).rejects.toThrow();
    const wrong = { ...first(spec), password: "wrong" };
    await expect(ask(spec, wrong, read)).rejects.toThrow();
    const [statement, says] = tuned;
    expect((await ask(spec, first(spec), statement)).replaceAll("\r", "")).toMatch(says);
    // Done twice is done once.
    expect(await does("database.provision", spec)).toEqual({ version });
    expect(await ask(spec, first(spec), read)).toBe("1");
  });

  it("shows no password in its processes' arguments or in its log, and no port on the host", async () => {
    const name = containerName(spec.databaseId);
    const shown = await docker("top", name, "-eo", "pid,args");
    const { stdout, stderr } = await execute("docker", ["logs", name]);
    for (const password of [spec.adminPassword, first(spec).password])
      expect(shown + stdout + stderr).not.toContain(password);
    expect(await docker("port", name)).toBe("");
  });

  it("keeps every row it confirmed when it is killed, and starts again by itself", async () => {
    const { pid } = await inspect();
    process.kill(pid, "SIGKILL");
    expect(await askUntilUp(spec, read)).toBe("1");
    expect((await inspect()).pid).not.toBe(pid);
    expect(await does("database.start", spec)).toHaveProperty("version");
  });

  it("keeps its rows over a stop, a start and a restart, and begins to run after a reboot", async () => {
    await does("database.stop", spec);
    expect(await engine.inspectContainer(containerName(spec.databaseId))).toBeNull();
    await expect(ask(spec, first(spec), read)).rejects.toThrow();
    // One that was stopped stays so.
    await sweep(host);
    expect(await engine.inspectContainer(containerName(spec.databaseId))).toBeNull();
    await does("database.start", spec);
    expect(await ask(spec, first(spec), read)).toBe("1");
    await does("database.restart", spec);
    expect(await ask(spec, first(spec), read)).toBe("1");
    await docker("stop", containerName(spec.databaseId));
    await sweep(host);
    expect(await askUntilUp(spec, read)).toBe("1");
  });

  it("ends in order whatever stops it, also under load: the next start recovers nothing, and nothing is lost", async () => {
    const [make, asked, whole] = fragile;
    await ask(spec, first(spec), make);
    const larger = { ...spec, limits: { ...spec.limits, memoryMb: 320 } };
    const ways: [kind: Job["kind"], spec: DatabaseSpec][] = [
      ["database.stop", spec],
      ["database.restart", spec],
      // Another pack.
      ["database.start", larger],
      ["database.start", spec],
    ];
    for (const [kind, wanted] of ways) {
      const { ended } = await openConnection(first(spec), load);
      removed.length = 0;
      await does(kind, wanted);
      expect(await ended).toBe("cut");
      expect(removed).toMatchObject([{ name: containerName(spec.databaseId) }]);
      expect(removed[0]?.log).toMatch(logSays[type].ended);
      expect(removed[0]?.log).not.toContain("tini");
      await does("database.start", wanted);
      expect(await ask(spec, first(spec), asked)).toBe(whole);
      expect(await logOf(containerName(spec.databaseId))).not.toMatch(logSays[type].recovered);
    }
    expect(await ask(spec, first(spec), read)).toBe("1");
  });

  /** A connection that the server has, and how it ends. */
  async function openConnection(
    login: Login,
    statement = linger,
  ): Promise<{ ended: Promise<"kept" | "cut"> }> {
    const served = async () => countServed(...(await socketTables((await inspect()).pid)));
    expect(await served()).toBe(0);
    const ended = ask(spec, login, statement).then(
      () => "kept" as const,
      () => "cut" as const,
    );
    await vi.waitUntil(async () => (await served()) > 0, { timeout: 20_000, interval: 20 });
    return { ended };
  }

  it("lets both logins in while a rotation is under way, then the new one alone, with all that the old one made", async () => {
    const old = first(spec);
    const next = loginOf(spec.databaseName, 2);
    const established = await openConnection(old);
    await does("database.rotate", { ...spec, logins: [old, next] });
    expect(await established.ended).toBe("kept");
    expect([await ask(spec, old, read), await ask(spec, next, read)]).toEqual(["1", "1"]);
    await ask(spec, old, write);
    const left = await openConnection(old);
    await does("database.rotate", { ...spec, logins: [next] });
    expect(await left.ended).toBe("cut");
    await expect(ask(spec, old, read)).rejects.toThrow();
    await ask(spec, next, write);
    expect(await ask(spec, next, read)).toBe("3");
    spec.logins = [next];
    // What the server learnt outlives it.
    await does("database.restart", spec);
    expect(await ask(spec, next, read)).toBe("3");
    await expect(ask(spec, old, read)).rejects.toThrow();
  });

  it("is not begun anew when its volume is gone or empty, by whatever job", async () => {
    const gone = specOf(type, `${type}_gone`);
    const volume = volumeName(gone.databaseId);
    await does("database.provision", gone);
    const { databaseId: id } = gone;
    expect(
      await docker(
        "exec",
        containerName(id),
        "sh",
        "-c",
        "cat /*/.berth-database /var/lib/*/.berth-database /var/lib/*/*/.berth-database 2>/dev/null || true",
      ),
    ).toBe(id);
    await does("database.restart", gone);
    await docker("rm", "--force", containerName(id));
    await docker("volume", "rm", volume);
    for (const kind of ["database.start", "database.restart", "database.backup"] as const)
      await expect(does(kind, gone)).rejects.toThrow(/data is not on this host: restore a backup/);
    expect(await leftOf(gone)).toBe("");
    await engine.ensureVolume(volume, databaseLabels(agentId, id, accountId));
    await expect(does("database.start", gone)).rejects.toThrow(/data is not on this host/);
    expect(await engine.inspectContainer(containerName(id))).toBeNull();
  });

  it("is deleted with its data", async () => {
    await does("database.delete", spec);
    expect(await docker("volume", "ls", "--quiet", "--filter", `name=${volumeName(spec.databaseId)}`)).toBe(
      "",
    );
    await does("database.delete", spec);
  });
});

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisClient } from "../../agent/databases/redis/server.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import { openInspection, type Inspection } from "../../agent/databases/inspect/index.ts";
import { openRunningDatabases } from "../../agent/databases/running.ts";
import { handle } from "../../agent/handlers/index.ts";
import type { Host } from "../../agent/host.ts";
import type { JobRun } from "../../agent/job.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { readSiteLog } from "../../agent/running/site-log.ts";
import type { DatabaseSpec, Job } from "../../protocol/agent/jobs.ts";
import { Answer, type ServerQuestion } from "../../protocol/agent/running.ts";
import { maxResultBytes, type DatabaseQueryResult } from "../../protocol/api/insight.ts";
import { formatId } from "../../protocol/ids.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import { databaseEngines } from "../../worker/domain/database-engines.ts";
import { closedAccess } from "../support/closed-access.ts";
import { docker, engine } from "../support/engine.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = randomBytes(8).toString("hex");
const accountId = formatId("account", Date.now(), randomBytes(10));
const folder = temporaryFolder();
const host = {
  agentId,
  engine,
  isolation: { demand: async () => undefined, refresh: async () => undefined },
  buildRoom: { demandDisk: async () => undefined },
  publicAccess: closedAccess(agentId),
} as unknown as Host;
const job = { signal: new AbortController().signal } as unknown as JobRun;
const does = (kind: Job["kind"], spec: DatabaseSpec) =>
  handle(host, { id: "job_test", kind, args: { ...spec, database: spec } } as unknown as Job, job);

const specs: DatabaseSpec[] = [];
let records: Records;
let inspect: Inspection;

beforeAll(async () => {
  await ensureImages(databaseImages);
  records = openRecords(join(folder, "running.db"));
  inspect = openInspection({
    engine,
    agentId,
    useOnce: (nonce, expiresAt) => records.useOnce(nonce, expiresAt, new Date()),
  });
}, 15 * 60_000);
afterAll(async () => {
  for (const spec of specs) await does("database.delete", spec);
  records.close();
  expect(await docker("ps", "--all", "--quiet", "--filter", `label=berth.agent=${agentId}`)).toBe("");
});

type Options = { write?: boolean; dryRun?: boolean; limit?: number; timeoutMs?: number };

function subject(type: DatabaseSpec["type"]) {
  const databaseName = `${type}_data`;
  const login = { username: `${databaseName}_1`, password: randomBytes(12).toString("hex") };
  const spec: DatabaseSpec = {
    databaseId: formatId("database", Date.now(), randomBytes(10)),
    accountId,
    type,
    image: databaseEngines[type].image,
    hostname: `${type}.internal`,
    databaseName,
    adminPassword: randomBytes(12).toString("hex"),
    logins: [login],
    limits: { memoryMb: 256, cpuMilli: 1000, pids: 256 },
  };
  specs.push(spec);
  const server = { databaseId: spec.databaseId, type, databaseName, login };
  /** As it would travel. */
  const ask = async (question: ServerQuestion) =>
    Answer.parse(JSON.parse(JSON.stringify(await inspect(question, new AbortController().signal))));
  const query = (
    statement: string,
    { write = false, dryRun = false, limit = 100, timeoutMs = 10_000 }: Options = {},
  ): Promise<Answer> =>
    ask({
      kind: "query",
      statement,
      dryRun,
      write: write
        ? { nonce: randomBytes(9).toString("hex"), expiresAt: new Date(Date.now() + 60_000).toISOString() }
        : null,
      limit,
      timeoutMs,
      ...server,
    });
  const result = async (statement: string, options?: Options): Promise<DatabaseQueryResult> => {
    const answer = await query(statement, options);
    if (answer.kind !== "query") throw new Error(`${statement}: ${JSON.stringify(answer)}`);
    return answer.result;
  };
  return {
    spec,
    server,
    ask,
    query,
    result,
    rows: async (statement: string, options?: Options) => (await result(statement, options)).rows,
    /** Why it is not run. */
    refusal: async (statement: string, options?: Options) => {
      const answer = await query(statement, options);
      if (answer.kind !== "statementRefused") throw new Error(`${statement}: ${JSON.stringify(answer)}`);
      return answer.error;
    },
  };
}

describe("a postgresql database", () => {
  const { spec, server, ask, query, result, rows, refusal } = subject("postgresql");
  const unharmed = async () => expect(await rows("SELECT count(*) FROM kept")).toEqual([[2]]);

  it("runs what writes as its owner, says how many rows it changed, and what the commit refuses", async () => {
    await does("database.provision", spec);
    await result("CREATE TABLE kept (id int PRIMARY KEY, word text NOT NULL DEFAULT 'x')", { write: true });
    await result(
      "CREATE TABLE part (id bigserial PRIMARY KEY, kept_id int REFERENCES kept (id) DEFERRABLE INITIALLY DEFERRED)",
      { write: true },
    );
    await result("CREATE INDEX part_kept ON part (kept_id, id)", { write: true });
    const inserted = await result("INSERT INTO kept VALUES (1, 'one'), (2, 'two') RETURNING id", {
      write: true,
      limit: 1,
    });
    expect(inserted).toMatchObject({
      columns: [{ name: "id", type: "integer" }],
      rows: [[1]],
      truncated: true,
      affectedRows: 2,
    });
    expect(await refusal("INSERT INTO part (kept_id) VALUES (99)", { write: true })).toMatch(/foreign key/);
    await unharmed();
    expect(await rows("SELECT count(*) FROM part")).toEqual([[0]]);
    // What no transaction takes.
    await result("VACUUM kept", { write: true });
  });

  it("answers what it wrote, however large what it shows of it, and refuses only what it did not do", async () => {
    await result("CREATE TABLE large (t text)", { write: true });
    const large = "INSERT INTO large VALUES (repeat('x', 2000000)) RETURNING t";
    for (const mode of [{ dryRun: true }, { write: true }])
      expect(await result(large, mode)).toMatchObject({ rows: [], truncated: true, affectedRows: 1 });
    expect(await refusal("COPY (DELETE FROM large RETURNING 1) TO STDOUT", { write: true })).toMatch(
      /use SELECT/,
    );
    expect(await refusal(large.replace("2000000", "30000000"), { write: true })).toMatch(/960 KiB/);
    expect(await rows("SELECT length(t) FROM large")).toEqual([[2_000_000]]);
    await result("DROP TABLE large", { write: true });
  });

  it("answers values as they are: nothing, texts of any kind, bytes, large numbers", async () => {
    const { columns, rows: found } = await result(
      `SELECT NULL, true, 1::int, 9007199254740993::int8, 1.10::numeric, 'NaN'::float8, E'a\\n\\t"\\\\ žluť 🐎', '\\x00ff'::bytea, '{"a":1}'::jsonb, ARRAY[1,NULL], 1 AS id, 2 AS id, ''`,
    );
    expect(found).toEqual([
      [
        null,
        true,
        1,
        "9007199254740993",
        "1.10",
        "NaN",
        'a\n\t"\\ žluť 🐎',
        { base64: "AP8=" },
        '{"a": 1}',
        "{1,NULL}",
        1,
        2,
        "",
      ],
    ]);
    expect(columns.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["boolean", "bigint", "numeric", "bytea", "jsonb", "integer[]"]),
    );
    expect(await rows("SELECT repeat('é', 400000)")).toEqual([["é".repeat(400_000)]]);
    expect(await rows("-- only a comment")).toEqual([]);
  });

  it("stops at the limit, whatever is asked, and at what fits into an answer", async () => {
    const many = await result("SELECT n FROM generate_series(1, 1000000000) n", {
      limit: 1000,
      timeoutMs: 3000,
    }).catch((error: Error) => error.message);
    // The server itself counts them all first, or is ended before.
    if (typeof many === "string") expect(many).toMatch(/took longer than 3 s/);
    const lazy = await result("SELECT generate_series(1, 1000000000)", { limit: 1000 });
    expect([lazy.rows.length, lazy.truncated]).toEqual([1000, true]);
    const exact = await result("SELECT generate_series(1, 40)", { limit: 40 });
    expect([exact.rows.length, exact.truncated]).toEqual([40, false]);
    const wide = await result("SELECT repeat('w', 100000) FROM generate_series(1, 100)");
    expect([wide.rows.length, wide.truncated]).toEqual([Math.floor(maxResultBytes / 100_005), true]);
    expect(await refusal("SELECT repeat('w', 2000000)")).toMatch(/larger than 960 KiB/);
    expect(await refusal("SELECT repeat('w', 30000000)")).toMatch(/larger than 960 KiB/);
  });

  it.each([
    ["DROP TABLE kept", /read-only transaction/],
    ["INSERT INTO kept VALUES (3, 'three')", /read-only transaction/],
    ["WITH gone AS (DELETE FROM kept RETURNING *) SELECT * FROM gone", /read-only transaction/],
    ["COMMIT; DROP TABLE kept", /multiple commands/],
    ["SELECT 1; COMMIT; DROP TABLE kept", /multiple commands/],
    ["DO $$ BEGIN COMMIT; DROP TABLE kept; END $$", /invalid transaction termination/],
    ["DO $$ BEGIN SET TRANSACTION READ WRITE; DROP TABLE kept; END $$", /must be set before any query/],
    ["DO $$ BEGIN SET transaction_read_only = off; DELETE FROM kept; END $$", /must be set before any query/],
    [
      "SELECT set_config('transaction_read_only', 'off', false), nextval('part_id_seq')",
      /must be set before/,
    ],
    ["SELECT nextval('part_id_seq')", /permission denied/],
    ["COPY kept TO PROGRAM 'touch /tmp/owned'", /must be superuser|permission denied/],
    ["COPY kept TO '/tmp/owned'", /must be superuser|permission denied/],
    ["COPY kept FROM STDIN", /permission denied/],
    ["COPY kept TO STDOUT", /use SELECT/],
    ["SELECT pg_read_file('/etc/passwd')", /permission denied/],
    ["SELECT lo_import('/etc/passwd')", /permission denied|read-only/],
    ["SET ROLE berth", /permission denied/],
    ["ALTER SYSTEM SET shared_buffers = '1GB'", /permission denied|transaction block/],
    ["CREATE EXTENSION dblink", /permission denied|read-only/],
    ["SELEC 1", /syntax error.*at character 1/],
  ])("refuses %s", async (statement, reason) => {
    expect(await refusal(statement)).toMatch(reason);
    await unharmed();
  });

  it("lets what reads end, lock or maintain nothing of its owner's, and read all of it", async () => {
    const hidden = ["CREATE TABLE hidden AS SELECT 1 AS id", "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY"];
    for (const statement of hidden) await result(statement, { write: true });
    expect(await rows("SELECT id FROM hidden")).toEqual([[1]]);
    await result("DROP TABLE hidden", { write: true });
    const owned = engine.execute(containerName(spec.databaseId), {
      command: [
        "psql",
        `--username=${server.login.username}`,
        `--dbname=${spec.databaseName}`,
        "-qAtc",
        "DO $$ BEGIN LOOP EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'ended'); PERFORM pg_sleep(0.1); END LOOP; END $$",
      ],
    });
    const sessions = `pg_stat_activity WHERE usename = '${server.login.username}' AND pid <> pg_backend_pid()`;
    await expect.poll(() => rows(`SELECT count(*) FROM ${sessions}`)).toEqual([[1]]);
    for (const end of ["terminate", "cancel"])
      expect(
        await refusal(`SELECT set_config('role', 'none', false), pg_${end}_backend(pid) FROM ${sessions}`),
      ).toMatch(/permission denied|must be a member/);
    expect(await refusal("LOCK TABLE kept IN ACCESS EXCLUSIVE MODE")).toMatch(/permission denied/);
    expect(await refusal("SELECT * FROM kept FOR UPDATE")).toMatch(/permission denied|read-only/);
    expect(await refusal("REINDEX TABLE kept")).toMatch(/must be owner|permission denied/);
    await query("ANALYZE kept");
    expect(await rows("SELECT last_analyze FROM pg_stat_user_tables WHERE relname = 'kept'")).toEqual([
      [null],
    ]);
    expect(await refusal(`SET ROLE ${spec.databaseName}`)).toMatch(/permission denied/);
    await result("CREATE TABLE ended ()", { write: true });
    expect((await owned).exitCode).toBe(0);
    await result("DROP TABLE ended", { write: true });
    // Also of a database of before, where nobody is yet who reads only.
    const admin = (statement: string) =>
      engine.execute(containerName(spec.databaseId), {
        command: ["psql", "--username=berth", `--dbname=${spec.databaseName}`, "-qAtc", statement],
      });
    expect(await admin("DROP OWNED BY berth_query; DROP ROLE berth_query")).toMatchObject({ exitCode: 0 });
    await query("SELECT 1");
    await unharmed();
  });

  it("gives neither its owner nor what reads any right over the server, its files or its passwords", async () => {
    const { username } = server.login;
    const statements = [
      "UPDATE pg_authid SET rolsuper = true",
      "INSERT INTO pg_auth_members SELECT * FROM pg_auth_members",
      "COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'",
      "COPY kept FROM PROGRAM 'id'",
      "COPY kept FROM '/etc/passwd'",
      "SELECT pg_read_file('/etc/berth/server.key')",
      "SELECT pg_read_binary_file('/etc/passwd')",
      "SELECT pg_ls_dir('/')",
      "SELECT pg_stat_file('/etc/passwd')",
      "SELECT lo_import('/etc/passwd')",
      "SELECT lo_export(0, '/tmp/owned')",
      "SELECT * FROM pg_hba_file_rules",
      "CREATE EXTENSION dblink",
      "CREATE EXTENSION postgres_fdw",
      "CREATE EXTENSION file_fdw",
      "CREATE FOREIGN DATA WRAPPER ours",
      "CREATE FUNCTION ours() RETURNS int LANGUAGE c AS 'libc.so.6', 'system'",
      "CREATE FUNCTION ours() RETURNS int LANGUAGE internal AS 'pg_reload_conf'",
      "CREATE EVENT TRIGGER ours ON ddl_command_end EXECUTE FUNCTION ours_event()",
      "CREATE PUBLICATION ours FOR ALL TABLES",
      "CREATE SUBSCRIPTION ours CONNECTION 'host=127.0.0.1 password=x' PUBLICATION ours WITH (connect = false)",
      "LOAD '/tmp/ours.so'",
      "SET session_preload_libraries = 'ours'",
      `ALTER DATABASE ${spec.databaseName} SET session_preload_libraries = 'ours'`,
      "SET ROLE berth",
      "SET ROLE berth_backup",
      "SET SESSION AUTHORIZATION berth",
      "ALTER ROLE berth_query PASSWORD 'known'",
      `ALTER ROLE ${username} SUPERUSER`,
      `ALTER ROLE ${username} CREATEROLE`,
      `ALTER ROLE ${username} BYPASSRLS`,
      "CREATE ROLE ours SUPERUSER",
      `GRANT berth TO ${username}`,
      `GRANT pg_read_server_files TO ${username}`,
      `GRANT pg_execute_server_program TO ${username}`,
      "ALTER FUNCTION tried(text) OWNER TO berth",
      "ALTER SCHEMA public OWNER TO berth",
      "SELECT pg_create_physical_replication_slot('ours')",
      "SELECT pg_reload_conf()",
      "SELECT pg_switch_wal()",
    ];
    const tried = (sqlStates: string) =>
      `SELECT statement, ended FROM unnest(ARRAY[${statements.map((one) => `'${one.replaceAll("'", "''")}'`).join(", ")}]) statement,
         LATERAL (SELECT tried(statement) AS ended) t WHERE ended NOT IN (${sqlStates})`;
    for (const statement of [
      "CREATE FUNCTION ours_event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$",
      `CREATE FUNCTION tried(statement text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
         EXECUTE statement; RETURN 'done'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$`,
    ])
      await result(statement, { write: true });
    // 42501: not permitted; 25006: not in a transaction that reads.
    expect(await rows(tried("'42501'"), { write: true })).toEqual([]);
    expect(await rows(tried("'42501', '25006'"))).toEqual([]);
    const passwords = "SELECT rolname FROM pg_authid WHERE rolpassword IS NOT NULL ORDER BY rolname";
    for (const statement of [passwords, "SELECT passwd FROM pg_shadow"])
      expect(await refusal(statement, { write: true })).toMatch(/permission denied/);
    // pg_read_all_data includes this table. There is nothing in it that was not generated and is not this database's.
    expect(await rows(passwords)).toEqual([["berth_query"], [username]]);
    for (const write of [true, false]) {
      expect(
        await rows("SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%SCRAM-SHA-256%'", { write }),
      ).toEqual([[0]]);
      // What its owner may call or read runs with the rights of Berth's superuser only where PostgreSQL itself checks.
      expect(
        await rows(
          `SELECT proname FROM pg_proc WHERE prosecdef AND proowner = 'berth'::regrole
           UNION SELECT relname FROM pg_class WHERE relkind = 'v' AND relowner = 'berth'::regrole
             AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY 1`,
          { write },
        ),
      ).toEqual([["pg_stat_statements"], ["pg_stat_statements_info"]]);
    }
    for (const name of ["tried(text)", "ours_event()"])
      await result(`DROP FUNCTION ${name}`, { write: true });
    await unharmed();
  });

  it.each([
    "BEGIN",
    "-- all of it\nBEGIN",
    "/* /* nested */ */ ; START TRANSACTION",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SET statement_timeout = 5",
    "SET CONSTRAINTS ALL DEFERRED",
    "RESET statement_timeout",
    "PREPARE one AS SELECT 1",
  ])("refuses %s, which is over with its session", async (statement) => {
    for (const mode of [{ write: true }, {}])
      expect(await refusal(statement, mode)).toMatch(/session of its own/);
    await unharmed();
  });

  it("keeps nothing of what a statement that reads could do beside", async () => {
    for (const statement of ["COMMIT", "SELECT lo_create(0)", "SET default_transaction_read_only = off"])
      await query(statement);
    expect(await rows("SELECT count(*) FROM pg_largeobject_metadata")).toEqual([[0]]);
    expect(await refusal("DELETE FROM kept")).toMatch(/read-only transaction/);
    await unharmed();
  });

  it("ends what takes too long, also what does not want to end, and nothing of it goes on", async () => {
    const beganAt = Date.now();
    expect(await refusal("SELECT pg_sleep(600)", { timeoutMs: 1000 })).toMatch(/took longer than 1 s/);
    expect(Date.now() - beganAt).toBeLessThan(60_000);
    const stubborn =
      "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$";
    expect(await refusal(stubborn, { timeoutMs: 1000 })).toMatch(/took longer than 1 s/);
    expect(await refusal(stubborn, { timeoutMs: 1000, write: true })).toMatch(/took longer than 1 s/);
    await expect
      .poll(() =>
        rows(
          "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        ),
      )
      .toEqual([[0]]);
    await unharmed();
  });

  it("outlives a value of a gibibyte; so does the agent", async () => {
    const before = process.memoryUsage().rss;
    const answer = await query("SELECT repeat('x', 1073741800)");
    expect(["statementRefused", "refused"]).toContain(answer.kind);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    await expect
      .poll(async () => (await query("SELECT count(*) FROM kept")).kind, { timeout: 60_000 })
      .toBe("query");
    await unharmed();
  });

  it("tells how it does, which statements run, and which took long", async () => {
    await result("UPDATE kept SET word = word", { write: true });
    await ask({ kind: "schema", ...server });
    const running = query("SELECT pg_sleep(60), 'running'", { timeoutMs: 90_000 });
    const insight = await vi.waitUntil(async () => {
      const answer = await ask({ kind: "insight", ...server });
      return answer.kind === "insight" && answer.insight.activeQueries.length > 0 && answer;
    });
    expect(insight).toMatchObject({
      insight: {
        connections: { used: expect.any(Number), max: 32 },
        activeQueries: [
          { statement: expect.stringContaining("pg_sleep"), state: expect.stringMatching(/active/) },
        ],
        cacheHitRatio: expect.any(Number),
      },
    });
    await ask({ kind: "endSession", session: insight.insight.activeQueries[0]?.id ?? "", ...server });
    await running;
    expect(insight.insight.sizeMb).toBeGreaterThan(5);
    const statements = insight.insight.slowQueries.map(({ statement }) => statement);
    expect(statements.join()).toContain("kept");
    // Berth's own questions are not the owner's.
    expect(
      statements.filter((text) =>
        /pg_stat_statements|json_build_object|default_transaction_read_only|search_path/.test(text),
      ),
    ).toEqual([]);
  });

  it("names the session whose lock another waits for, and ends it for its owner alone", async () => {
    const holding = query(
      "WITH one AS (UPDATE kept SET word = word WHERE id = 1 RETURNING 1) SELECT pg_sleep(60) FROM one",
      { write: true, timeoutMs: 90_000 },
    );
    const active = async () => {
      const answer = await ask({ kind: "insight", ...server });
      return answer.kind === "insight" ? answer.insight.activeQueries : [];
    };
    const holder = await vi.waitUntil(async () =>
      (await active()).find(({ statement }) => statement.includes("pg_sleep(60)")),
    );
    const waiting = query("UPDATE kept SET word = word WHERE id = 1", { write: true, timeoutMs: 90_000 });
    const waiter = await vi.waitUntil(async () =>
      (await active()).find(({ blockedBy }) => blockedBy.length > 0),
    );
    expect(waiter).toMatchObject({
      statement: "UPDATE kept SET word = word WHERE id = 1",
      waitsFor: expect.stringMatching(/^Lock: /),
      blockedBy: [holder.id],
    });
    const end = (session: string) => ask({ kind: "endSession", session, ...server });
    expect(await end(holder.id)).toEqual({ kind: "endSession", ended: true });
    expect(await waiting).toMatchObject({ kind: "query", result: { affectedRows: 1 } });
    expect((await holding).kind).not.toBe("query");
    expect(await end(holder.id)).toEqual({ kind: "endSession", ended: false });
    await unharmed();
  });

  it("ends what reads as well, which has a login of its own", async () => {
    const reading = query("SELECT pg_sleep(60), 'to be ended'", { timeoutMs: 90_000 });
    const found = await vi.waitUntil(async () => {
      const answer = await ask({ kind: "insight", ...server });
      if (answer.kind !== "insight") return undefined;
      return answer.insight.activeQueries.find(({ statement }) => statement.includes("to be ended"));
    });
    expect(await ask({ kind: "endSession", session: found.id, ...server })).toMatchObject({ ended: true });
    expect((await reading).kind).not.toBe("query");
  });

  it("runs no function of its owner's with the login that reads, when it tells which statements run or ends one", async () => {
    const write = (statement: string) => result(statement, { write: true });
    await write(`CREATE FUNCTION public."left"(text, int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
      IF session_user = 'berth_query' THEN ALTER ROLE berth_query SET work_mem = '1MB'; END IF; RETURN 'captured'; END $$`);
    await write(`CREATE FUNCTION public.pg_terminate_backend(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
      IF session_user = 'berth_query' THEN ALTER ROLE berth_query SET work_mem = '2MB'; RETURN true; END IF;
      RAISE insufficient_privilege; END $$`);
    await write("ALTER DATABASE postgresql_data SET search_path = public, pg_catalog");
    const running = query("SELECT pg_sleep(60), 'seen by the reader'", { timeoutMs: 90_000 });
    const found = await vi.waitUntil(async () => {
      const answer = await ask({ kind: "insight", ...server });
      const active = answer.kind === "insight" ? answer.insight.activeQueries : [];
      return active.find(({ statement }) => /by the reader|captured/.test(statement));
    });
    await ask({ kind: "endSession", session: found.id, ...server });
    await running;
    await write("ALTER DATABASE postgresql_data RESET search_path");
    await write('DROP FUNCTION public."left"(text, int), public.pg_terminate_backend(int)');
    expect(
      await rows("SELECT rolconfig::text LIKE '%work_mem%' FROM pg_roles WHERE rolname = 'berth_query'"),
    ).toEqual([[false]]);
  });

  it("says how many rows a statement would change, and changes none", async () => {
    const dry = (statement: string) => result(statement, { dryRun: true });
    expect(await dry("DELETE FROM kept")).toMatchObject({ affectedRows: 2, rows: [] });
    expect(await dry("UPDATE kept SET word = 'y' WHERE id = 1 RETURNING word")).toMatchObject({
      affectedRows: 1,
      rows: [["y"]],
    });
    expect(await dry("DROP TABLE part")).toMatchObject({ affectedRows: null });
    expect(await refusal("INSERT INTO part (kept_id) VALUES (99)", { dryRun: true })).toMatch(/foreign key/);
    expect(await refusal("COMMIT; DELETE FROM kept", { dryRun: true })).toMatch(/multiple commands/);
    await query("COMMIT", { dryRun: true });
    await query("DO $$ BEGIN DELETE FROM kept; COMMIT; END $$", { dryRun: true });
    expect(await rows("SELECT id, word FROM kept ORDER BY id")).toEqual([
      [1, "one"],
      [2, "two"],
    ]);
    expect(await rows("SELECT count(*) FROM part")).toEqual([[0]]);
  });

  it("shows its tables with columns, keys, indexes and sizes", async () => {
    const answer = await ask({ kind: "schema", ...server });
    if (answer.kind !== "schema") throw new Error(JSON.stringify(answer));
    expect(answer.schema.truncated).toBe(false);
    expect(answer.schema.tables).toEqual([
      expect.objectContaining({
        schema: "public",
        name: "kept",
        kind: "table",
        rowsEstimate: 2,
        columns: [
          { name: "id", type: "integer", nullable: false, default: null },
          { name: "word", type: "text", nullable: false, default: "'x'::text" },
        ],
        primaryKey: ["id"],
      }),
      expect.objectContaining({
        name: "part",
        foreignKeys: [{ columns: ["kept_id"], table: "public.kept", references: ["id"] }],
        indexes: [
          { name: "part_kept", unique: false, columns: ["kept_id", "id"] },
          { name: "part_pkey", unique: true, columns: ["id"] },
        ],
      }),
    ]);
  });

  it("runs a confirmed statement once, also for an agent that has just started", async () => {
    const write = {
      nonce: randomBytes(9).toString("hex"),
      expiresAt: new Date(Date.now() + 60_000).toISOString(),
    };
    const question: ServerQuestion = {
      kind: "query",
      statement: "INSERT INTO kept VALUES (10, 'ten')",
      write,
      dryRun: false,
      limit: 1,
      timeoutMs: 5000,
      ...server,
    };
    expect(await ask(question)).toMatchObject({ kind: "query", result: { affectedRows: 1 } });
    records.close();
    records = openRecords(join(folder, "running.db"));
    expect(await ask(question)).toMatchObject({
      kind: "statementRefused",
      error: expect.stringContaining("already used"),
    });
    expect(await rows("DELETE FROM kept WHERE id = 10", { write: true })).toEqual([]);
    await unharmed();
  });

  it("shows its log under its own id, without the passwords, and is counted as running", async () => {
    const lines = await readSiteLog({ engine, agentId, records, onStart: () => undefined }, spec.databaseId, {
      tail: 1000,
      after: null,
      masks: [],
    });
    const text = lines.map((line) => line.text).join("\n");
    expect(text).toContain("syntax error");
    expect(text).not.toContain(spec.adminPassword);
    expect(text).not.toContain(server.login.password);
    const running = await openRunningDatabases(engine, agentId).list();
    expect(running.get(spec.databaseId)).toMatch(/^[0-9a-f]{64}$/);
    expect(await docker("top", containerName(spec.databaseId), "-eo", "pid,args")).not.toContain(
      server.login.password,
    );
  });

  it("is asked by too many at once, and refuses those above the limit", async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => query("SELECT pg_sleep(1)", { timeoutMs: 30_000 })),
    );
    const kinds = answers.map(({ kind }) => kind).sort();
    expect(kinds).toEqual(["query", "query", "query", "query", "refused", "refused"]);
  });

  it("says why its login is refused and what to do, which helps: all connections are in use, or the password was changed", async () => {
    const psql = async (input: string, ...who: string[]) => {
      const command = [
        "env",
        `PGPASSWORD=${server.login.password}`,
        ...who,
        `--dbname=${server.databaseName}`,
      ];
      const ended = await engine.execute(containerName(spec.databaseId), { command, input });
      expect(ended).toMatchObject({ exitCode: 0, stderr: "" });
    };
    const { username } = server.login;
    const insight = () => ask({ kind: "insight", ...server });
    await psql(`ALTER ROLE ${username} CONNECTION LIMIT 0`, "psql", "--username=berth");
    expect(await insight()).toMatchObject({
      kind: "refused",
      error: expect.stringMatching(/^All connections .*in use/),
    });
    await does("database.restart", spec);
    const owner = ["psql", "--host=127.0.0.1", `--username=${username}`];
    await psql(`ALTER ROLE ${username} PASSWORD 'mine'`, "PGOPTIONS=-c role=none", ...owner);
    for (const answer of [await insight(), await query("SELECT 1", { write: true })])
      expect(answer).toMatchObject({
        kind: "refused",
        error: expect.stringMatching(/refuses the password.*Restart/),
      });
    await does("database.restart", spec);
    expect((await insight()).kind).toBe("insight");
  });

  it("does not run: whoever asks is told", async () => {
    await does("database.stop", spec);
    expect(await query("SELECT 1")).toMatchObject({
      kind: "refused",
      error: expect.stringContaining("is not running"),
    });
  });
});

describe("a mysql database", () => {
  const { spec, server, ask, query, result, rows, refusal } = subject("mysql");
  const unharmed = async () => expect(await rows("SELECT COUNT(*) FROM kept")).toEqual([[2]]);

  it("runs what writes as its owner, and says how many rows it changed", async () => {
    await does("database.provision", spec);
    const statements = [
      "CREATE TABLE kept (id int PRIMARY KEY, word varchar(20) NOT NULL DEFAULT 'x')",
      "CREATE TABLE part (id int PRIMARY KEY, kept_id int, KEY part_kept (kept_id, id), FOREIGN KEY (kept_id) REFERENCES kept (id))",
      "CREATE TABLE loose (id int) ENGINE = Aria",
      "CREATE PROCEDURE harm() BEGIN COMMIT; DELETE FROM kept; END",
      "CREATE FUNCTION sly() RETURNS int BEGIN SET SESSION tx_read_only = 0; DELETE FROM kept; RETURN 1; END",
      "CREATE FUNCTION loosely() RETURNS int BEGIN INSERT INTO loose VALUES (1); RETURN 1; END",
    ];
    for (const statement of statements) await result(statement, { write: true });
    expect(await result("INSERT INTO kept VALUES (1, 'one'), (2, 'two')", { write: true })).toMatchObject({
      affectedRows: 2,
      rows: [],
    });
    expect(await refusal("INSERT INTO part VALUES (1, 99)", { write: true })).toMatch(/foreign key/);
    await unharmed();
  });

  it("answers what it wrote, however large what it shows of it", async () => {
    await result("CREATE TABLE large (t longtext)", { write: true });
    const large = "INSERT INTO large VALUES (REPEAT('x', 2000000)) RETURNING t";
    expect(await result(large, { write: true })).toMatchObject({ rows: [], truncated: true });
    expect(await rows("SELECT LENGTH(t) FROM large")).toEqual([[2_000_000]]);
    await result("DROP TABLE large", { write: true });
  });

  it("answers values as they are: nothing, texts of any kind, bytes, large numbers", async () => {
    const { rows: found, columns } = await result(
      "SELECT NULL, 1, 9007199254740993, 1.10, 'a\\n\\t\"žluť 🐎', x'00ff', '', 1 AS id, 2 AS id, CAST('2026-01-02' AS date)",
    );
    expect(found).toEqual([
      [null, 1, "9007199254740993", "1.10", 'a\n\t"žluť 🐎', { base64: "AP8=" }, "", 1, 2, "2026-01-02"],
    ]);
    expect(columns.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["decimal", "varchar", "varbinary", "date"]),
    );
    expect(await rows("SELECT REPEAT('é', 400000)")).toEqual([["é".repeat(400_000)]]);
  });

  it("stops at the limit, and at what fits into an answer; what was cut off does not go on", async () => {
    const many = await result("SELECT a.seq FROM seq_1_to_1000000000 a", { limit: 1000 });
    expect([many.rows.length, many.truncated]).toEqual([1000, true]);
    await expect
      .poll(() =>
        rows(
          "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%seq_1_to_10000%' AND ID <> CONNECTION_ID()",
        ),
      )
      .toEqual([[0]]);
    const exact = await result("SELECT seq FROM seq_1_to_40", { limit: 40 });
    expect([exact.rows.length, exact.truncated]).toEqual([40, false]);
    const wide = await result("SELECT REPEAT('w', 100000) FROM seq_1_to_100");
    expect([wide.rows.length, wide.truncated]).toEqual([Math.floor(maxResultBytes / 100_005), true]);
    expect(await refusal("SELECT REPEAT('w', 2000000)")).toMatch(/larger than 960 KiB/);
    // More than a packet holds is nothing to MariaDB.
    expect(await rows("SELECT REPEAT('w', 1073741824)")).toEqual([[null]]);
  });

  it.each([
    ["DROP TABLE kept", /begins with SELECT/],
    ["/*!50000 BEGIN NOT ATOMIC COMMIT; DELETE FROM kept; END */", /begins with SELECT/],
    ["/* a */ BEGIN NOT ATOMIC COMMIT; DELETE FROM kept; END /* */ SELECT", /begins with SELECT/],
    ["CALL harm()", /begins with SELECT/],
    ["EXECUTE IMMEDIATE 'DELETE FROM kept'", /begins with SELECT/],
    ["SET STATEMENT max_statement_time = 0 FOR DELETE FROM kept", /begins with SELECT/],
    ["SELECT 1; COMMIT; DELETE FROM kept", /error in your SQL syntax/],
    ["SELECT 1; DELETE FROM kept", /error in your SQL syntax/],
    ["ANALYZE DELETE FROM kept", /begins with SELECT/],
    ["ANALYZE TABLE kept", /begins with SELECT/],
    ["WITH x AS (SELECT 1) DELETE FROM kept", /READ ONLY transaction|error in your SQL syntax/],
    ["SELECT sly()", /READ ONLY transaction|can't be changed/],
    ["SELECT loosely()", /READ ONLY transaction/],
    ["SELECT * FROM kept INTO OUTFILE '/tmp/owned'", /[Aa]ccess denied/],
    ["SELECT * FROM kept INTO DUMPFILE '/tmp/owned2'", /[Aa]ccess denied/],
    ["SELECT * FROM mysql.user", /denied/],
  ])("refuses %s", async (statement, reason) => {
    expect(await refusal(statement)).toMatch(reason);
    await unharmed();
    expect(await rows("SELECT COUNT(*) FROM loose")).toEqual([[0]]);
  });

  it.each([
    ["LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE kept", /not allowed|disabled|forbidden/i],
    ["LOAD DATA INFILE '/etc/passwd' INTO TABLE kept", /denied/],
    ["SET GLOBAL max_connections = 1", /denied/],
    ["SHUTDOWN", /denied/],
    ["INSERT INTO kept VALUES (3, 'x'); DELETE FROM kept", /error in your SQL syntax/],
  ])("refuses %s, also where it may write", async (statement, reason) => {
    expect(await refusal(statement, { write: true })).toMatch(reason);
    await unharmed();
  });

  it.each([
    "BEGIN",
    "begin work",
    "-- all of it\nSTART TRANSACTION",
    "/* a */ COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "SET SESSION sql_mode = ''",
    "SET @a = 1",
    "USE mysql_data",
    "LOCK TABLES kept READ",
    "UNLOCK TABLES",
    "PREPARE one FROM 'SELECT 1'",
  ])("refuses %s, which is over with its session", async (statement) => {
    for (const mode of [{ write: true }, {}])
      expect(await refusal(statement, mode)).toMatch(/session of its own/);
    await unharmed();
  });

  it.each([
    "BEGIN NOT ATOMIC DELETE FROM part; END",
    "BEGIN /* all */ NOT ATOMIC DELETE FROM part; END",
    "SET STATEMENT max_statement_time = 5 FOR UPDATE kept SET word = word",
    "UPDATE kept SET word = word",
  ])("runs %s, which has an effect of its own", async (statement) => {
    expect((await query(statement, { write: true })).kind).toBe("query");
    await unharmed();
  });

  it("reads what reads, whatever comment is before it", async () => {
    const reads = [
      "-- a\n# b\n/* c */ SELECT 1",
      "(SELECT 1)",
      "SHOW TABLES",
      "DESCRIBE kept",
      "EXPLAIN SELECT 1",
    ];
    for (const statement of reads) expect((await query(statement)).kind).toBe("query");
    expect(await file("/tmp/owned")).toBe(false);
  });
  const file = (path: string) =>
    docker("exec", containerName(spec.databaseId), "test", "-e", path).then(
      () => true,
      () => false,
    );

  it("ends what takes too long, and nothing of it goes on", async () => {
    const beganAt = Date.now();
    const product = "SELECT COUNT(*) FROM seq_1_to_100000000 a, seq_1_to_100000000 b";
    expect(await refusal(product, { timeoutMs: 1000 })).toMatch(/took longer than 1 s/);
    expect(
      await refusal("BEGIN NOT ATOMIC LOOP DO SLEEP(60); END LOOP; END", { timeoutMs: 1000, write: true }),
    ).toMatch(/took longer than 1 s/);
    expect(Date.now() - beganAt).toBeLessThan(60_000);
    expect(await refusal("SELECT SLEEP(60)", { timeoutMs: 1000 })).toMatch(/took longer than 1 s/);
    // It answers when it is ended, as if it had come to its end.
    const { durationMs } = await result("SELECT BENCHMARK(100000000000, SHA2('x', 512))", {
      timeoutMs: 1000,
    });
    expect(durationMs).toBeLessThan(60_000);
    await expect
      .poll(() =>
        rows(
          "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL AND ID <> CONNECTION_ID()",
        ),
      )
      .toEqual([[0]]);
    await unharmed();
  });

  it("tells how it does, which statements run and which took long, and shows its tables", async () => {
    const running = query("SELECT SLEEP(60), 'running'", { timeoutMs: 90_000 });
    const insight = await vi.waitUntil(async () => {
      const answer = await ask({ kind: "insight", ...server });
      return answer.kind === "insight" && answer.insight.activeQueries.length > 0 && answer;
    });
    expect(insight).toMatchObject({
      insight: {
        connections: { max: 32 },
        activeQueries: [{ statement: expect.stringContaining("SLEEP") }],
      },
    });
    await ask({ kind: "endSession", session: insight.insight.activeQueries[0]?.id ?? "", ...server });
    await running;
    expect(insight.insight.slowQueries.map(({ statement }) => statement).join()).toContain("kept");
    expect(insight.insight.cacheHitRatio).toBeGreaterThan(0);
    const answer = await ask({ kind: "schema", ...server });
    if (answer.kind !== "schema") throw new Error(JSON.stringify(answer));
    expect(answer.schema.tables).toEqual([
      expect.objectContaining({
        name: "kept",
        kind: "table",
        primaryKey: ["id"],
        columns: [
          expect.objectContaining({ name: "id", type: "int(11)", nullable: false }),
          expect.objectContaining({ name: "word", type: "varchar(20)", default: "'x'" }),
        ],
      }),
      expect.objectContaining({ name: "loose" }),
      expect.objectContaining({
        name: "part",
        foreignKeys: [{ columns: ["kept_id"], table: "kept", references: ["id"] }],
        indexes: expect.arrayContaining([{ name: "part_kept", unique: false, columns: ["kept_id", "id"] }]),
      }),
    ]);
  });

  it("ends a session of its owner, and no other", async () => {
    const running = query("SELECT SLEEP(60), 'to be ended'", { timeoutMs: 90_000 });
    const found = await vi.waitUntil(async () => {
      const answer = await ask({ kind: "insight", ...server });
      if (answer.kind !== "insight") return undefined;
      return answer.insight.activeQueries.find(({ statement }) => statement.includes("to be ended"));
    });
    const end = (session: string) => ask({ kind: "endSession", session, ...server });
    expect(await end(found.id)).toEqual({ kind: "endSession", ended: true });
    expect((await running).kind).not.toBe("query");
    expect(await end("999999999")).toEqual({ kind: "endSession", ended: false });
    await unharmed();
  });

  it("says why its login is refused and what to do, which helps: all connections are in use, or the password was changed", async () => {
    const insight = () => ask({ kind: "insight", ...server });
    const open = query("SELECT SLEEP(60), 'in use'", { timeoutMs: 90_000 });
    const limit = `ALTER USER ${server.login.username}@'%' WITH MAX_USER_CONNECTIONS 1`;
    await vi.waitUntil(async () => JSON.stringify(await insight()).includes("'in use'"));
    await engine.execute(containerName(spec.databaseId), {
      command: ["mariadb", "--user=root", `--password=${spec.adminPassword}`, `--execute=${limit}`],
    });
    expect(await insight()).toMatchObject({
      kind: "refused",
      error: expect.stringMatching(/^All connections .*in use/),
    });
    await does("database.restart", spec);
    await open;
    await result("SET PASSWORD = PASSWORD('mine')", { write: true });
    for (const answer of [await insight(), await query("SELECT 1")])
      expect(answer).toMatchObject({
        kind: "refused",
        error: expect.stringMatching(/refuses the password.*Restart/),
      });
    await does("database.restart", spec);
    expect((await insight()).kind).toBe("insight");
  });

  it("shows tables with a history as tables, which take part in a dry run or not, and no sequences", async () => {
    for (const statement of [
      "CREATE TABLE aged (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
      "CREATE SEQUENCE counter",
      "CREATE VIEW seen AS SELECT id FROM aged",
    ])
      await result(statement, { write: true });
    const answer = await ask({ kind: "schema", ...server });
    if (answer.kind !== "schema") throw new Error(JSON.stringify(answer));
    expect(answer.schema.tables.map(({ name, kind }) => [name, kind])).toEqual([
      ["aged", "table"],
      ["kept", "table"],
      ["loose", "table"],
      ["part", "table"],
      ["seen", "view"],
    ]);
    expect(answer.schema.tables[0]).toMatchObject({ rowsEstimate: 0, sizeMb: expect.any(Number) });
    await result("DROP TABLE loose", { write: true });
    expect(await result("INSERT INTO aged VALUES (1)", { dryRun: true })).toMatchObject({ affectedRows: 1 });
    await result("CREATE TABLE loose (id int) ENGINE = Aria WITH SYSTEM VERSIONING", { write: true });
    expect(await refusal("DELETE FROM loose", { dryRun: true })).toMatch(
      /loose \(Aria\) cannot be rolled back/,
    );
    for (const statement of ["DROP VIEW seen", "DROP SEQUENCE counter", "DROP TABLE aged"])
      await result(statement, { write: true });
  });

  it("says how many rows a statement would change and changes none, where all of it can be rolled back", async () => {
    expect(await refusal("DELETE FROM part", { dryRun: true })).toMatch(
      /loose \(Aria\) cannot be rolled back/,
    );
    await result("DROP TABLE loose", { write: true });
    expect(await result("UPDATE kept SET word = 'y'", { dryRun: true })).toMatchObject({ affectedRows: 2 });
    for (const statement of [
      "DROP TABLE part",
      "TRUNCATE part",
      "CALL harm()",
      "BEGIN NOT ATOMIC COMMIT; END",
    ])
      expect(await refusal(statement, { dryRun: true })).toMatch(/A dry run takes INSERT/);
    expect(await rows("SELECT word FROM kept ORDER BY id")).toEqual([["one"], ["two"]]);
  });
});

describe("a redis database", () => {
  const { spec, server, ask, result, rows, refusal } = subject("redis");
  const unharmed = async () => expect(await rows("GET kept")).toEqual([["one two"]]);

  it("runs one command as its owner, with the quotes of redis-cli, and answers values as they are", async () => {
    await does("database.provision", spec);
    const commands = [
      'SET kept "one two"',
      'SET bytes "\\x00\\xff"',
      "SET umlaut 'žluť 🐎'",
      "RPUSH list a b c",
      "HSET hash field 1",
    ];
    for (const command of commands) await result(command, { write: true });
    await unharmed();
    expect(await rows("GET bytes")).toEqual([[{ base64: "AP8=" }]]);
    expect(await rows("GET umlaut")).toEqual([["žluť 🐎"]]);
    expect(await rows("GET nothing")).toEqual([[null]]);
    expect(await rows("STRLEN kept")).toEqual([[7]]);
    expect(await result("LRANGE list 0 -1", { limit: 2 })).toMatchObject({
      rows: [["a"], ["b"]],
      truncated: true,
    });
    expect(await rows("SCAN 0 MATCH kept COUNT 100")).toEqual([["0"], [["kept"]]]);
    expect(await rows("OBJECT ENCODING kept")).toEqual([["embstr"]]);
    await result("SETRANGE large 2000000 x", { write: true });
    expect(await result("GETDEL large", { write: true })).toMatchObject({ rows: [], truncated: true });
  });

  it.each([
    ["SET kept other", /not a read-only command/],
    ["FLUSHALL", /not a read-only command/],
    ["EVAL \"return redis.call('DEL', 'kept')\" 0", /block the database/],
    ["EVAL_RO 'while true do end' 0", /block the database/],
    ["BLPOP nothing 0", /block the database/],
    ["XREAD BLOCK 0 STREAMS s 0", /block the database/],
    ["SUBSCRIBE x", /block the database/],
    ["KEYS *", /use SCAN/],
    ["CONFIG GET *", /not a read-only command/],
    ["SHUTDOWN NOSAVE", /not a read-only command/],
    ["MONITOR", /could block the database/],
    ["GET 'kept", /quote/],
    ["GET kept\nDEL kept", /more than one command/],
    ["NOSUCH", /no command/],
    ["LPUSH kept", /not a read-only command/],
  ])("refuses %s", async (statement, reason) => {
    expect(await refusal(statement)).toMatch(reason);
    await unharmed();
  });

  it.each([
    ["EVAL 'while true do end' 0", /block the database/],
    ["CONFIG SET maxmemory 0", /NOPERM/],
    ["SHUTDOWN NOSAVE", /NOPERM/],
    ["ACL SETUSER redis_data_1 +@all", /NOPERM/],
    ["DEBUG SLEEP 30", /NOPERM|no command|refused/],
    ["INCR kept", /not an integer/],
    ["SELECT 3", /session of its own/],
    ["MULTI", /session of its own/],
    ["WATCH kept", /session of its own/],
  ])("refuses %s, also where it may write", async (statement, reason) => {
    expect(await refusal(statement, { write: true })).toMatch(reason);
    await unharmed();
  });

  it("counts keys by type a bounded number of times, tells how it does, and takes no more than fits", async () => {
    const many = Array.from({ length: 20_000 }, (_, n) => `k${n} v`).join(" ");
    await result(
      `MSET ${many
        .slice(0, 99_000)
        .replace(/ [^ ]*$/, "")
        .replace(/ k\d+$/, "")}`,
      { write: true },
    );
    const answer = await ask({ kind: "schema", ...server });
    if (answer.kind !== "schema") throw new Error(JSON.stringify(answer));
    const [keyspace] = answer.schema.keyspaces;
    expect(keyspace?.keys).toBeGreaterThan(10_800);
    expect(keyspace?.sampledKeys).toBeGreaterThanOrEqual(10_000);
    expect(keyspace?.sampledKeys).toBeLessThan(10_800);
    expect(keyspace?.byType).toMatchObject({ string: expect.any(Number) });
    expect(answer.schema.truncated).toBe(true);
    await result("SETRANGE large 2000000 x", { write: true });
    expect(await refusal("GET large")).toMatch(/larger than 960 KiB/);
    await result("SETRANGE large 40000000 x", { write: true });
    expect(await refusal("GET large")).toMatch(/larger than 960 KiB/);
    const insight = await ask({ kind: "insight", ...server });
    expect(insight).toMatchObject({
      kind: "insight",
      insight: { connections: { used: expect.any(Number) }, cacheHitRatio: expect.any(Number) },
    });
    await unharmed();
  });

  it("tells which of its owner's commands took long, and none of Berth's own", async () => {
    const admin = (...words: string[]) =>
      docker(
        "exec",
        ...["REDISCLI_AUTH", "VALKEYCLI_AUTH"].flatMap((name) => ["--env", `${name}=${spec.adminPassword}`]),
        containerName(spec.databaseId),
        ...redisClient("--user", "berth", ...words),
      );
    await admin("CONFIG", "SET", "slowlog-log-slower-than", "0");
    await ask({ kind: "schema", ...server });
    // Last: a server keeps no more than the newest 128.
    await result("SET taken long", { write: true });
    await admin("CONFIG", "SET", "slowlog-log-slower-than", "10000");
    const answer = await ask({ kind: "insight", ...server });
    const statements =
      answer.kind === "insight" ? answer.insight.slowQueries.map((slow) => slow.statement) : [];
    expect(statements).toContain("SET taken long");
    expect(
      statements.filter((statement) => /^(?:INFO|SCAN|TYPE|SELECT|COMMAND|CONFIG) /.test(statement)),
    ).toEqual([]);
    await unharmed();
  });

  it("ends a blocked session of its owner, and not the administrator's; it has no dry runs", async () => {
    const client = (user: string, password: string, ...words: string[]) =>
      docker(
        "exec",
        "--env",
        `REDISCLI_AUTH=${password}`,
        "--env",
        `VALKEYCLI_AUTH=${password}`,
        containerName(spec.databaseId),
        ...redisClient("--user", user, ...words),
      ).then(
        () => "ended",
        () => "ended",
      );
    const active = async () => {
      const answer = await ask({ kind: "insight", ...server });
      return answer.kind === "insight" ? answer.insight.activeQueries : [];
    };
    const { username, password } = server.login;
    const blocked = client(username, password, "BLPOP", "nothing", "0");
    const [found] = await vi.waitUntil(async () => {
      const all = await active();
      return all.length === 1 ? all : undefined;
    });
    expect(found).toMatchObject({ statement: "blpop", waitsFor: "blpop" });
    const end = (session: string) => ask({ kind: "endSession", session, ...server });
    expect(await end(found?.id ?? "")).toEqual({ kind: "endSession", ended: true });
    expect(await blocked).toBe("ended");
    expect(await end("999999999")).toEqual({ kind: "endSession", ended: false });
    void client("berth", spec.adminPassword, "BLPOP", "nothing", "10");
    const [other] = await vi.waitUntil(async () => {
      const all = await active();
      return all.length === 1 ? all : undefined;
    });
    expect(await end(other?.id ?? "")).toMatchObject({
      kind: "statementRefused",
      error: expect.stringContaining("another user"),
    });
    expect(await refusal("SET kept other", { dryRun: true })).toMatch(/no dry run/);
    await unharmed();
  });
});

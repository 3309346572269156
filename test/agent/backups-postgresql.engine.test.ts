import { Transform } from "node:stream";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { postgresql as copier } from "../../agent/databases/postgresql/backup.ts";
import { containerName } from "../../agent/docker/database-objects.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { DatabaseHost } from "../support/database-host.ts";

let host: DatabaseHost;
let spec: DatabaseSpec;
const own = (statements: string) => host.psql(spec, statements);

beforeAll(async () => {
  await ensureImages(["postgres:17"]);
  host = await new DatabaseHost().open();
  spec = await host.provision("postgresql", "odd");
}, 15 * 60_000);
afterAll(() => host.close());
afterEach(() =>
  host.psql(
    spec,
    `SET default_transaction_read_only = off; ALTER DATABASE ${spec.databaseName} RESET ALL`,
    "berth",
  ),
);

const checks = `SELECT conname, conrelid::regclass, contypid::regtype, convalidated, conislocal, coninhcount,
    pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint')
  FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace ORDER BY 1, 2::text`;
const anew = () => own("DROP SCHEMA IF EXISTS public, ours CASCADE; CREATE SCHEMA public");

describe("a PostgreSQL database's backup is made and proven", () => {
  it.each([
    ["of a type that has no such hash", "t timestamptz, c text, n json, x point"],
    ["that are rows themselves", "t pair, c pair, n int, x text"],
    ["as the functions that read it", "count int, sum text, record_out json, json_build_array int"],
  ])("whatever its columns are called: columns %s", async (_, columns) => {
    await anew();
    await own(`CREATE TYPE pair AS (id int, word text);
      CREATE TABLE acked (id int, ${columns}); CREATE TABLE t (t int); CREATE TABLE empty ();`);
    await own("INSERT INTO acked (id) SELECT generate_series(1, 10); INSERT INTO t VALUES (1)");
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    // Not the one column only: another id is another checksum.
    const checksum = async () => {
      const { tables } = host.server.found(await host.backUp(spec)).manifest.fingerprint;
      return tables.find(({ name }) => name.includes("acked"))?.checksum;
    };
    const before = await checksum();
    await own("UPDATE acked SET id = 99 WHERE id = 1");
    expect(await checksum()).not.toBe(before);
  });

  it("whatever is called as what the server has, and is set for whoever connects, and the settings are kept", async () => {
    await anew();
    await own(`
      CREATE TABLE public.pg_class (t text); INSERT INTO public.pg_class VALUES ('ours');
      CREATE TABLE public.pg_stat_statements (a int);
      CREATE TYPE public.text AS (a int); CREATE DOMAIN public.int4 AS pg_catalog.text;
      CREATE FUNCTION count() RETURNS int LANGUAGE sql AS 'SELECT 1/0';
      CREATE FUNCTION record_out(anyelement) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN RAISE 'captured'; END $$;
      CREATE FUNCTION set_config(pg_catalog.text, pg_catalog.text, boolean) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN RAISE 'captured'; END $$;
      CREATE FUNCTION same(oid, oid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'captured'; END $$;
      CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, FUNCTION = same);
      CREATE TABLE paid (a money, b json); INSERT INTO paid VALUES (7, '1');
      ALTER DATABASE ${spec.databaseName} SET search_path = public, pg_catalog;
      ALTER DATABASE ${spec.databaseName} SET work_mem = '9216kB';
      ALTER DATABASE ${spec.databaseName} SET statement_timeout = '20s';
      ALTER DATABASE ${spec.databaseName} SET default_transaction_read_only = on;
      ALTER DATABASE ${spec.databaseName} SET client_encoding = LATIN1;
      ALTER DATABASE ${spec.databaseName} SET quote_all_identifiers = on;
      ALTER DATABASE ${spec.databaseName} SET standard_conforming_strings = off;
      ALTER DATABASE ${spec.databaseName} SET application_name = 'it''s $berth$ "\\! touch /tmp/owned';
      COMMENT ON DATABASE ${spec.databaseName} IS 'the shop''s $berth$\n\\! touch /tmp/owned';`);
    const kept = `SELECT pg_catalog.string_agg(c, ';' ORDER BY c) FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(setconfig) c WHERE setrole OPERATOR(pg_catalog.=) 0;
      SELECT description FROM pg_catalog.pg_shdescription JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) objoid WHERE datname OPERATOR(pg_catalog.=) current_database()`;
    const before = await own(kept);
    expect(before).toContain("application_name=it's $berth$");
    expect(before).toContain("the shop's $berth$\n");
    await host.does("database.restart", { database: spec });
    expect(await host.restore(spec, await host.backUp(spec))).toBeNull();
    expect(await own(kept)).toBe(before);
    expect(await inContainer("ls", "/tmp/owned")).toBe(2);
  });

  it("and its restore is not among the statements on which its owner's time was spent", async () => {
    const fresh = await host.provision("postgresql", "fresh");
    const spent = () =>
      host.psql(fresh, "SELECT query FROM pg_stat_statements WHERE query ~ '^CREATE TABLE (public.)?things'");
    await host.psql(fresh, "CREATE TABLE things (id int)");
    expect(await spent()).toContain("things");
    expect(await host.restore(fresh, await host.backUp(fresh))).toBeNull();
    expect(await spent()).toBe("");
    await host.psql(fresh, "CREATE TABLE things_of_today (id int)");
    expect(await spent()).toContain("things_of_today");
  });

  it("with what is set of an extension, whose library a new session has not loaded", async () => {
    await anew();
    await own(`CREATE EXTENSION pg_trgm; SELECT similarity('a', 'b');
      ALTER DATABASE ${spec.databaseName} SET pg_trgm.similarity_threshold = 0.5;`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own("SELECT set_limit(show_limit()), similarity('a', 'b')")).toBe("0.5|0");
    // Once the extension is dropped, its setting stays, and nobody can set it again.
    await own("DROP EXTENSION pg_trgm");
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });

  it("and is restored into another database, whose owner takes the place of the role that it names", async () => {
    await anew();
    await own(`CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2);
      ALTER TABLE kept ENABLE ROW LEVEL SECURITY; ALTER TABLE kept FORCE ROW LEVEL SECURITY;
      CREATE POLICY first ON kept TO current_user USING (id = 1);`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    const other = await host.provision("postgresql", "elsewhere");
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await host.psql(other, "SELECT id FROM kept; SELECT roles FROM pg_policies")).toBe(
      `1\n{${other.databaseName}}`,
    );
    expect(await host.psql(other, "SELECT tableowner FROM pg_tables WHERE tablename = 'kept'")).toBe(
      other.databaseName,
    );
    const named = `SELECT count(*) FROM pg_roles WHERE rolname = '${spec.databaseName}'`;
    expect(await host.psql(other, named)).toBe("0");
    // The backups of that are good in their turn.
    expect(await host.verify(other, await host.backUp(other))).toBeNull();
    await host.rotate(other);
    expect(await host.psql(other, "SELECT id FROM kept")).toBe("1");
  });

  it("with policies that name its login, which another server does not have, also once another one took its place", async () => {
    await anew();
    const [{ username } = { username: "" }] = spec.logins;
    await own(`CREATE TABLE kept (id int); INSERT INTO kept VALUES (1); ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
      CREATE POLICY first ON kept TO ${username} USING (id = 1); CREATE POLICY second ON kept TO ${username}, current_user;`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    await host.rotate(spec);
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own("SELECT policyname, roles FROM pg_policies ORDER BY 1")).toBe(
      `first|{${username}}\nsecond|{${spec.databaseName},${username}}`,
    );
    expect(await own(`SELECT rolcanlogin FROM pg_roles WHERE rolname = '${username}'`)).toBe("f");
    const other = await host.provision("postgresql", "another");
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await host.verify(other, await host.backUp(other))).toBeNull();
  });

  it("also where a restore's statements would find no name, for want of a schema, and is restored into another database", async () => {
    await anew();
    await own(`
      CREATE TABLE words (word text PRIMARY KEY); INSERT INTO words VALUES ('a'), ('b');
      CREATE FUNCTION low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
      CREATE FUNCTION lower_of(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT low($1)';
      CREATE FUNCTION low_of(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN low($1); END';
      CREATE FUNCTION is_word(text) RETURNS boolean LANGUAGE plpgsql STABLE AS
        'BEGIN RETURN EXISTS (SELECT FROM words WHERE word = lower($1)); END';
      CREATE FUNCTION place_of(regclass) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1::text; END';
      CREATE SCHEMA ours; CREATE TABLE ours.held (a text);
      CREATE FUNCTION ours.sole(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
      CREATE FUNCTION ours_of(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN sole($1); END';
      CREATE DOMAIN lowered AS text CONSTRAINT lowered CHECK (low_of(VALUE) = 'a');
      CREATE TABLE checked (word text CHECK (lower_of(word) = 'a'), of lowered);
      CREATE TABLE before_words (word text CHECK (is_word(word)));
      CREATE TABLE parent (word text CONSTRAINT alone CHECK (low_of(word) = 'a') NO INHERIT,
        CONSTRAINT shared CHECK (low_of(word) <> ''), CONSTRAINT given CHECK (low_of(word) <> 'x'));
      CREATE TABLE child (CONSTRAINT shared CHECK (low_of(word) <> '')) INHERITS (parent);
      COMMENT ON CONSTRAINT shared ON child IS 'said of it';
      CREATE TABLE made (word text, low text GENERATED ALWAYS AS (lower_of(word)) STORED,
        place text GENERATED ALWAYS AS (place_of('words'::regclass)) STORED);
      CREATE TABLE parts (word text) PARTITION BY LIST (low_of(word));
      CREATE TABLE part PARTITION OF parts FOR VALUES IN ('a');
      CREATE TABLE indexed (word text, CONSTRAINT none_else EXCLUDE (low_of(word) WITH =));
      CREATE INDEX low ON indexed (low_of(word)); CREATE UNIQUE INDEX some_words ON indexed (word) WHERE low_of(word) = 'a';
      SELECT lo_from_bytea(0, 'large');
      SET search_path = public, ours; CREATE TABLE paths (word text CHECK (ours_of(word) <> ''));`);
    const tables = ["checked", "before_words", "parent", "made", "parts", "indexed", "paths"];
    const insert = tables.map((table) => `INSERT INTO ${table} (word) VALUES ('A');`).join("\n");
    await own(
      `SET search_path = public, ours; ${insert} INSERT INTO child VALUES ('A'); ALTER TABLE child ADD CONSTRAINT later CHECK (word = 'no') NOT VALID;`,
    );
    const read = `${tables.map((table) => `SELECT t FROM ${table} t;`).join("\n")} SELECT low, place FROM made;
      SET enable_seqscan = off; SELECT count(*) FROM indexed WHERE low_of(word) = 'a'; ${checks}`;
    const before = await own(read);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    const other = await host.provision("postgresql", "other");
    expect(await host.restore(other, backupId, spec)).toBeNull();
    expect(await host.psql(other, read)).toBe(before);
    expect(await host.psql(other, "SHOW search_path")).toBe('"$user", public');
  });

  it("also where rows contradict what became of a check, which is then not valid, or a materialized view fails, which is then unpopulated", async () => {
    await anew();
    await own(`
      CREATE FUNCTION is_good(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
      CREATE DOMAIN good AS int CHECK (is_good(VALUE));
      CREATE TABLE t (n int CHECK (is_good(n)), g good); INSERT INTO t VALUES (1, 1);
      CREATE MATERIALIZED VIEW m AS SELECT n FROM t;
      CREATE OR REPLACE FUNCTION is_good(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 1';
      INSERT INTO t VALUES (2, 2);
      CREATE FUNCTION no() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
      CREATE MATERIALIZED VIEW f AS SELECT no();
      CREATE OR REPLACE FUNCTION no() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'no more'; END $$;`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    const kept = `SELECT t FROM t; SELECT * FROM m;
      SELECT relname FROM pg_class WHERE relkind = 'm' AND NOT relispopulated;
      SELECT conname FROM pg_constraint WHERE contype = 'c' AND NOT convalidated AND connamespace = 'public'::regnamespace ORDER BY 1`;
    expect(await own(kept)).toBe("(1,1)\n(2,2)\n1\n2\nf\ngood_check\nt_n_check");
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });

  it("of a table whose rows are in other partitions once they are restored, which are by the hash of an enum", async () => {
    await anew();
    await own(`CREATE TYPE kind AS ENUM ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
      CREATE TABLE events (kind kind, id int) PARTITION BY HASH (kind, id);
      CREATE TABLE first PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER 0);
      CREATE TABLE second PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER 1);
      CREATE TABLE third (id int, kind kind); ALTER TABLE events ATTACH PARTITION third FOR VALUES WITH (MODULUS 3, REMAINDER 2);
      INSERT INTO events SELECT one, n FROM unnest(enum_range(NULL::kind)) one, generate_series(1, 100) n;`);
    const contents = "SELECT count(*), md5(string_agg(e::text, ';' ORDER BY kind, id)) FROM events e";
    const before = await own(contents);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own(contents)).toBe(before);
    await own("UPDATE events SET id = 999 WHERE id = 1 AND kind = 'a'");
    const sums = (id: string) => host.server.found(id).manifest.fingerprint.tables;
    expect(sums(await host.backUp(spec))).not.toEqual(sums(backupId));
  });

  it("of tables whose inherited columns are not the first, which they are once they are restored", async () => {
    await anew();
    await own(`CREATE TABLE cities (name text, population int);
      CREATE TABLE capitals (state text) INHERITS (cities); INSERT INTO capitals VALUES ('A', 1, 'x');
      CREATE TABLE joined (state text, population int, founded date, name text); INSERT INTO joined VALUES ('y', 2, '1900-01-01', 'B');
      ALTER TABLE cities ADD founded date; ALTER TABLE joined INHERIT cities;
      CREATE TABLE made (twice int GENERATED ALWAYS AS (population * 2) STORED, place point) INHERITS (cities);
      ALTER TABLE cities ADD half int GENERATED ALWAYS AS (population / 2) STORED; INSERT INTO made VALUES ('C', 3);
      CREATE TABLE plain () INHERITS (cities); INSERT INTO plain VALUES ('D', 4);`);
    const read =
      "SELECT name, state, founded, half FROM capitals; SELECT name, state, founded, half FROM joined; SELECT name, twice, half FROM made; SELECT * FROM plain";
    const before = await own(read);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own(read)).toBe(before);
    const sums = (id: string) => host.server.found(id).manifest.fingerprint;
    expect(sums(await host.backUp(spec)).tables).toEqual(sums(backupId).tables);
    // A value that is in another column is another row.
    await own("UPDATE capitals SET name = state, state = name");
    expect(sums(await host.backUp(spec)).tables).not.toEqual(sums(backupId).tables);
  });

  it("of an index that became whole when the one partition without it was dropped", async () => {
    await anew();
    await own(`CREATE TABLE days (day int, word text) PARTITION BY RANGE (day);
      CREATE TABLE late PARTITION OF days FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (day);
      CREATE TABLE later PARTITION OF late FOR VALUES FROM (10) TO (15);
      CREATE TABLE early PARTITION OF days FOR VALUES FROM (0) TO (10);
      CREATE INDEX words ON ONLY days (word); CREATE INDEX late_words ON ONLY late (word);
      CREATE INDEX later_words ON later (word);
      ALTER INDEX words ATTACH PARTITION late_words; ALTER INDEX late_words ATTACH PARTITION later_words;
      CREATE INDEX half ON ONLY days (day, word);
      DROP TABLE early;`);
    expect(await own("SELECT indisvalid FROM pg_index WHERE indexrelid = 'words'::regclass")).toBe("f");
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });

  it("where generated columns are not what the function gives that computes them, or it reads rows that are restored later", async () => {
    await anew();
    await own(`
      CREATE FUNCTION factor(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
      CREATE TABLE changed (n int, more int GENERATED ALWAYS AS (factor(n)) STORED, always int GENERATED ALWAYS AS (n + 1) STORED CHECK (always > n));
      CREATE INDEX ON changed (more); CREATE VIEW seen AS SELECT more FROM changed;
      CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
      CREATE TRIGGER noted AFTER UPDATE ON changed FOR EACH ROW WHEN (NEW.more > 0) EXECUTE FUNCTION noted();
      CREATE TABLE parted (n int, x point, "t" int GENERATED ALWAYS AS (factor(n)) STORED) PARTITION BY RANGE (n);
      CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (10);
      CREATE TABLE parted_high (n int, x point, "t" int GENERATED ALWAYS AS (n - 1) STORED);
      ALTER TABLE parted ATTACH PARTITION parted_high FOR VALUES FROM (10) TO (20);
      CREATE TABLE lone (always int GENERATED ALWAYS AS (7) STORED); INSERT INTO lone DEFAULT VALUES;
      INSERT INTO changed VALUES (1), (2); INSERT INTO parted VALUES (1, '(0,0)'), (11, NULL);
      CREATE TABLE prices (item int, price int); INSERT INTO prices VALUES (1, 70), (2, 30);
      CREATE FUNCTION price(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN (SELECT price FROM prices WHERE item = $1); END';
      CREATE TABLE orders (item int, price int GENERATED ALWAYS AS (price(item)) STORED); INSERT INTO orders VALUES (1), (2), (3);`);
    const read = "SELECT * FROM orders ORDER BY item; SELECT * FROM lone; SELECT * FROM changed ORDER BY n";
    const before = await own(read);
    expect(before).toBe("1|70\n2|30\n3|\n7\n1|2|2\n2|4|3");
    await own("CREATE OR REPLACE FUNCTION factor(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 3'");
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own(read)).toBe("1|70\n2|30\n3|\n7\n1|3|2\n2|6|3");
    expect(await own("SELECT n, t FROM parted ORDER BY n; SELECT more FROM changed WHERE more = 6")).toBe(
      "1|3\n11|10\n6",
    );
  });

  it("where generated columns cannot be computed, or their tables not even be created, before others are there", async () => {
    await anew();
    await own(`
      CREATE TABLE rates (code text PRIMARY KEY, rate int); INSERT INTO rates VALUES ('a', 2), ('b', 3);
      CREATE FUNCTION rate(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT rate FROM rates WHERE code = $1';
      CREATE FUNCTION known(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
        'DECLARE found int; BEGIN SELECT rate INTO STRICT found FROM rates WHERE code = $1; RETURN found; END';
      CREATE TABLE paid (id int PRIMARY KEY, code text, rate int NOT NULL GENERATED ALWAYS AS (rate(code)) STORED UNIQUE,
        known int GENERATED ALWAYS AS (known(code)) STORED);
      CREATE TABLE part_paid () INHERITS (paid); CREATE VIEW of_paid AS SELECT id, known FROM paid;
      INSERT INTO paid VALUES (1, 'a'); INSERT INTO part_paid VALUES (2, 'b');`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own("SELECT * FROM paid ORDER BY id; SELECT * FROM of_paid ORDER BY id")).toBe(
      "1|a|2|2\n2|b|3|3\n1|2\n2|3",
    );
    // What fails for good is damage: a view of its own rows.
    await own("CREATE VIEW ring AS SELECT 1 AS a; CREATE OR REPLACE VIEW ring AS SELECT a FROM ring");
    expect(await host.verify(spec, await host.backUp(spec))).toContain(
      'relation "public.ring" does not exist',
    );
  });

  it("whose names have characters that Unicode reserves", async () => {
    await anew();
    await own(`CREATE TABLE "a\u{10fffe}b" (id int CONSTRAINT "\u{fdd0}" CHECK (id > 0)); INSERT INTO "a\u{10fffe}b" VALUES (1);
      CREATE SEQUENCE "\uffff"; SELECT nextval('"\uffff"');
      CREATE TABLE words (word text); CREATE FUNCTION allowed(text) RETURNS boolean LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM words WHERE word = $1)';
      INSERT INTO words VALUES ('x'); CREATE TABLE checked (word text CONSTRAINT "\u{fdd1}" CHECK (allowed(word))); INSERT INTO checked VALUES ('x');`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    expect(await host.restore(spec, backupId)).toBeNull();
    expect(await own(`SELECT id FROM "a\u{10fffe}b"; SELECT nextval('"\uffff"')`)).toBe("1\n2");
    const names = "SELECT length(conname) FROM pg_constraint WHERE contype = 'c' AND convalidated";
    expect(await own(`${names} AND connamespace = 'public'::regnamespace`)).toBe("1\n1");
  });

  it("of thousands of sequences and tables", async () => {
    await anew();
    await own("SELECT format('CREATE TABLE many%s (id serial)', n) FROM generate_series(1, 3000) n \\gexec");
    expect(await host.verify(spec, await host.backUp(spec))).toBeNull();
  });
});

const inContainer = async (...command: string[]): Promise<number> =>
  (await host.engine.execute(containerName(spec.databaseId), { command })).exitCode;
const superusers = () =>
  host.psql(spec, "SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolsuper", "berth");

describe("what a PostgreSQL database's owner makes while it is backed up", () => {
  it("runs with no right over the server: a sequence that becomes a view that calls a function", async () => {
    await anew();
    await own(`CREATE SCHEMA ours; CREATE SEQUENCE ours.held; CREATE SEQUENCE ours.swapped;
      CREATE FUNCTION ours.take() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
        COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'; RETURN 1; END $$;`);
    const waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const swap = (async () => {
      const lock = own(`BEGIN; DROP SEQUENCE ours.held;
        DO $$ BEGIN FOR i IN 1..600 LOOP PERFORM pg_sleep(0.1);
          EXIT WHEN EXISTS (SELECT FROM pg_views WHERE viewname = 'swapped');
        END LOOP; END $$;
        ROLLBACK`);
      await vi.waitUntil(
        async () =>
          (await own(
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE relname = 'held' AND mode = 'AccessExclusiveLock' AND granted",
          )) === "1",
        { timeout: 20_000, interval: 50 },
      );
      release();
      await vi.waitUntil(async () => (await own(waiting)) !== "0", { timeout: 20_000, interval: 50 });
      await own(
        "SET statement_timeout = '2s'; DROP SEQUENCE ours.swapped; CREATE VIEW ours.swapped AS SELECT ours.take() AS last_value",
      );
      await lock;
    })();
    await held;
    const outcome = await host.backUp(spec).catch((error: Error) => error.message);
    await swap;
    expect([await inContainer("ls", "/tmp/owned"), await superusers()]).toEqual([2, "berth"]);
    expect(outcome).toMatch(/sequences from "ours"."held" on could not be read/);
  });

  it("does not empty a table of which the rows are dumped and not yet counted", async () => {
    await anew();
    await own("CREATE TABLE late (n int); INSERT INTO late VALUES (1), (2), (3)");
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const pipe: typeof host.engine.pipe = async (id, program) => {
      const piped = await host.engine.pipe(id, program);
      if (program.command[0] !== "psql") return piped;
      const input = new Transform({
        transform: (statement: Buffer, _, done) =>
          void (String(statement).includes('FROM ONLY "public"."late"') ? held : Promise.resolve()).then(() =>
            done(null, statement),
          ),
      });
      input.pipe(piped.input);
      return { ...piped, input };
    };
    const { signal } = new AbortController();
    const server = { engine: { ...host.engine, pipe }, id: containerName(spec.databaseId), spec, signal };
    const fingerprint = await copier.copy(server, async (bytes) => {
      for await (const _ of bytes);
      await expect(own("SET lock_timeout = '1s'; TRUNCATE late")).rejects.toThrow(/lock timeout/);
      release();
    });
    expect(fingerprint.tables).toContainEqual(
      expect.objectContaining({ name: '"public"."late"', rows: "3" }),
    );
  });

  it("is waited for during a minute, and then named, where a transaction that stays open has locked it", async () => {
    await anew();
    await own("CREATE SEQUENCE held");
    const other = await host.provision("postgresql", "locked");
    await host.psql(other, "CREATE VIEW held AS SELECT 1");
    const failureOf = async (database: DatabaseSpec, change: string) => {
      const locked = `SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'held'::regclass`;
      const open = host
        .psql(database, `BEGIN; ${change}; SELECT pg_sleep(600)`)
        .catch((error: Error) => error.message);
      await vi.waitUntil(async () => (await host.psql(database, locked)) === "1", { timeout: 20_000 });
      const failure = await host.backUp(database).catch((error: Error) => error.message);
      const ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sleep(600)'";
      await host.psql(database, ends, "berth");
      await open;
      return failure;
    };
    expect(
      await Promise.all([
        failureOf(spec, "ALTER SEQUENCE held RENAME TO renamed"),
        failureOf(other, "ALTER VIEW held RENAME TO renamed"),
      ]),
    ).toEqual([
      expect.stringMatching(/^One of the sequences .* locked for more than a minute/),
      expect.stringMatching(/^One of the views .* locked for more than a minute/),
    ]);
  }, 240_000);

  it("is named with the reason when it cannot be read, and nothing of its rows is", async () => {
    await anew();
    await own("CREATE TABLE broken (word text); INSERT INTO broken SELECT repeat('private ', 10000)");
    await own("CREATE TABLE other (a int)");
    const path = `/var/lib/postgresql/data/${await own("SELECT pg_relation_filepath('broken')")}`;
    await host.does("database.restart", { database: spec });
    expect(
      await inContainer("dd", "if=/dev/urandom", `of=${path}`, "bs=100", "count=1", "conv=notrunc"),
    ).toBe(0);
    const error = await host.backUp(spec).catch((reason: Error) => reason.message);
    expect(error).toMatch(/^The table (public\.)?"?(public"\.")?broken"? could not be read: .*damaged\.$/);
    expect(error).not.toContain("private");
  });
});

describe("what a PostgreSQL database's owner sets for everyone", () => {
  it("keeps Berth neither from backups nor from rotations: a library or a tablespace that is not there, few connections, or little time", async () => {
    await anew();
    const { databaseName } = spec;
    await own(`CREATE TABLE kept (n int);
      ALTER DATABASE ${databaseName} CONNECTION LIMIT 1;
      ALTER DATABASE ${databaseName} SET temp_tablespaces = 'missing', "Other, ""one""";
      ALTER DATABASE ${databaseName} SET transaction_timeout = '1ms';
      ALTER DATABASE ${databaseName} SET local_preload_libraries = missing;`);
    const backupId = await host.backUp(spec);
    expect(await host.verify(spec, backupId)).toBeNull();
    await host.rotate(spec);
    expect(await host.restore(spec, backupId)).toBeNull();
    await expect(own("SELECT 1")).rejects.toThrow(/could not access file/);
    await host.run(spec, [
      "env",
      "PGOPTIONS=-c local_preload_libraries= -c transaction_timeout=0",
      "psql",
      "--username=berth",
      `--dbname=${databaseName}`,
      `--command=ALTER DATABASE ${databaseName} RESET ALL`,
    ]);
    const limit = "SELECT datconnlimit FROM pg_database WHERE datname = current_database()";
    expect(await own(limit)).toBe("-1");
  });
});

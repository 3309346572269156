import type { Fingerprint } from "../../protocol/agent/backups.ts";
import { admin, identifier, ownOptions, psqlCommand } from "../databases/postgresql.ts";
import type { Copier, Server } from "./copier.ts";
import { demandSuccess, feed } from "./copier.ts";
import { Session } from "./session.ts";
import { strayMark } from "./strays.ts";

const noTimeouts = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0";
const env = [strayMark, `PGOPTIONS=${noTimeouts} ${ownOptions}`];

const open = async ({ engine, id, spec }: Server): Promise<Session> =>
  new Session(
    await engine.pipe(id, {
      command: psqlCommand(spec.databaseName),
      env,
    }),
    (word) => `SELECT '${word}';`,
  );

/** Nothing of the owner's is called: only the server's own functions and operators are found. */
const begin = `
SET search_path = pg_catalog;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
SET max_parallel_workers_per_gather = 0;
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;`;

const own = (schema: string): string => `${schema} <> 'information_schema' AND ${schema} NOT LIKE 'pg\\_%'`;
const notOfExtension = (catalog: string, oid: string): string =>
  `NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = '${catalog}'::regclass AND x.objid = ${oid} AND x.deptype = 'e')`;

const relations = (kinds: string): string =>
  `FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN (${kinds}) AND c.relpersistence <> 't' AND ${own("n.nspname")} AND ${notOfExtension("pg_class", "c.oid")}`;

/** Types whose hash is that of their value: of an enum it is that of a number which differs from server to server. */
const plainTypes = (
  "bool int2 int4 int8 float4 float8 numeric text varchar bpchar bytea " +
  "date time timetz timestamp timestamptz interval uuid jsonb inet macaddr"
)
  .split(" ")
  .map((type) => `'${type}'::regtype`)
  .join(", ");
const listTables = `SELECT json_build_array(n.nspname, c.relname, NOT EXISTS (SELECT FROM pg_attribute a
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid NOT IN (${plainTypes})))
  ${relations("'r'")};`;
const listCounters = `SELECT json_build_array(n.nspname, c.relname) ${relations("'S'")};`;
const countObjects = `SELECT json_build_object(
  'views', (SELECT count(*)::text ${relations("'v', 'm'")}),
  'partitioned tables', (SELECT count(*)::text ${relations("'p'")}),
  'indexes', (SELECT count(*)::text FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE i.indisvalid AND ${own("n.nspname")} AND ${notOfExtension("pg_class", "t.oid")}),
  'constraints', (SELECT count(*)::text FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
    WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND ${own("n.nspname")} AND ${notOfExtension("pg_constraint", "k.oid")}),
  'functions', (SELECT count(*)::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE ${own("n.nspname")} AND ${notOfExtension("pg_proc", "p.oid")}),
  'triggers', (SELECT count(*)::text FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE NOT g.tgisinternal AND ${own("n.nspname")} AND ${notOfExtension("pg_class", "t.oid")}),
  'large objects', (SELECT count(*)::text FROM pg_largeobject_metadata));`;

type Name = [schema: string, name: string];
const parsed = <T>(lines: string[]): T[] => lines.map((line) => JSON.parse(line) as T);
const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

const ofValues = "hash_record_extended(t, 0)";
/** Rows as the server prints them, by its own functions: a cast could be the owner's. Five times slower. */
const ofText = "hashtextextended(textin(record_out(t)), 0)";

async function readTables(session: Session): Promise<Pick<Fingerprint, "tables" | "objects">> {
  const tables = [];
  for (const [schema, table, isPlain] of parsed<[...Name, isPlain: boolean]>(await session.ask(listTables))) {
    const name = `${identifier(schema)}.${identifier(table)}`;
    const [line = ""] = await session.ask(
      `SELECT json_build_array(count(*)::text, coalesce(sum(${isPlain ? ofValues : ofText}), 0)::text) FROM ONLY ${name} t;`,
    );
    const [rows, checksum] = JSON.parse(line) as [string, string];
    tables.push({ name, rows, checksum });
  }
  const [objects = "{}"] = await session.ask(countObjects);
  const [large = ""] = await session.ask(
    "SELECT json_build_array(count(*)::text, coalesce(sum(hashtextextended(loid::text || ':' || pageno::text || ':' || encode(data, 'hex'), 0)), 0)::text) FROM pg_largeobject;",
  );
  const [rows, checksum] = JSON.parse(large) as [string, string];
  tables.push({ name: "large objects", rows, checksum });
  return { tables: tables.sort(byName), objects: JSON.parse(objects) as Record<string, string> };
}

async function readCounters(session: Session, names: Name[]): Promise<{ name: string; value: string }[]> {
  const values = [];
  for (const [schema, counter] of names) {
    const name = `${identifier(schema)}.${identifier(counter)}`;
    const [value = ""] = await session.ask(`SELECT last_value FROM ${name};`);
    values.push({ name, value });
  }
  return values;
}

export const postgresql: Copier = {
  hasty: [
    "-c",
    "fsync=off",
    "-c",
    "full_page_writes=off",
    "-c",
    "synchronous_commit=off",
    "-c",
    "autovacuum=off",
  ],

  async copy(server, take) {
    const session = await open(server);
    try {
      // A restore by the owner may not say anything about Berth's own extension, which may have gone with its schema.
      await session.ask(
        `DO $$ BEGIN IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements') THEN
          COMMENT ON EXTENSION pg_stat_statements IS NULL; END IF; END $$;`,
      );
      await session.ask(begin);
      const [snapshot = ""] = await session.ask("SELECT pg_export_snapshot();");
      const names = parsed<Name>(await session.ask(listCounters));
      const before = await readCounters(session, names);
      const dump = await server.engine.pipe(server.id, {
        command: [
          "pg_dump",
          `--username=${admin}`,
          `--dbname=${server.spec.databaseName}`,
          `--snapshot=${snapshot}`,
          "--format=custom",
          "--compress=1",
          "--no-owner",
          "--no-privileges",
          "--lock-wait-timeout=60000",
        ],
        env,
      });
      const dumped = take(dump.output).then(() => demandSuccess("pg_dump", dump));
      try {
        const [held] = await Promise.all([readTables(session), dumped]);
        const after = await readCounters(session, names);
        await session.end();
        const counters = before.map(({ name, value }, index) => ({
          name,
          from: value,
          to: after[index]?.value ?? value,
        }));
        return { ...held, counters: counters.sort(byName) };
      } catch (error) {
        dump.close();
        await dumped.catch(() => undefined);
        throw error;
      }
    } finally {
      session.close();
    }
  },

  async fingerprint(server) {
    const session = await open(server);
    try {
      await session.ask(begin);
      const held = await readTables(session);
      const counters = await readCounters(session, parsed<Name>(await session.ask(listCounters)));
      await session.end();
      return {
        ...held,
        counters: counters.map(({ name, value }) => ({ name, from: value, to: value })).sort(byName),
      };
    } finally {
      session.close();
    }
  },

  /** As the owner's own login: what the copy says is done with the owner's rights, never with Berth's. */
  async fill({ engine, id, spec }, bytes) {
    const [login] = spec.logins;
    const restore = await engine.pipe(id, {
      command: [
        "pg_restore",
        `--username=${login?.username}`,
        `--dbname=${spec.databaseName}`,
        "--no-owner",
        "--no-privileges",
        "--exit-on-error",
      ],
      env: [strayMark, `PGOPTIONS=${noTimeouts}`],
    });
    await feed("pg_restore", restore, bytes);
  },
};

import type { Fingerprint } from "../../../protocol/agent/backups.ts";
import { backupReader, ensureReaders, identifier, ownEnvironment, psqlCommand } from "./server.ts";
import { run } from "../run-program.ts";
import { JobError } from "../../job.ts";
import type { Copier, Server } from "../backups/copier.ts";
import { outputOf } from "../backups/copier.ts";
import { Session } from "../backups/session.ts";
import { strayMark } from "../backups/strays.ts";
import { notOfExtension, own, parsed, printable } from "./own-objects.ts";
import { databaseComment, fill, refill } from "./restore.ts";

const env = [strayMark, ...ownEnvironment];

/** Uses a read-only role: if an owner replaces a table with a view meanwhile, the view runs with this role's rights. */
async function open({ engine, id, spec, signal }: Server): Promise<Session> {
  await ensureReaders(spec.databaseName, (program) => run({ engine }, id, program, signal));
  const command = [...psqlCommand(spec.databaseName, backupReader), "--set=VERBOSITY=sqlstate"];
  const session = new Session(await engine.pipe(id, { command, env }), (word) => `SELECT '${word}';`);
  await session.ask(settings);
  return session;
}

/**
 * Fixes the output format of values, which the owner may have changed; not every version knows the settings of the
 * last line.
 */
const settings = `
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
SET xmlbinary = 'base64';
SET lc_monetary = 'C';
SET lock_timeout = '60s';
SET max_parallel_workers_per_gather = 0;
SELECT set_config(name, value, false) FROM pg_settings s JOIN (VALUES ('transaction_timeout', '0'),
  ('restrict_nonsystem_relation_kind', 'view, foreign-table')) v (name, value) USING (name);`;

const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;";

const relations = (kinds: string): string =>
  `FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN (${kinds}) AND c.relpersistence <> 't' AND ${own} AND ${notOfExtension("pg_class", "c.oid")}`;

/** Types whose hash depends only on their value; that of an enum depends on a number that differs between servers. */
const plainTypes = (
  "bool int2 int4 int8 float4 float8 numeric text varchar bpchar bytea " +
  "date time timetz timestamp timestamptz interval uuid jsonb inet macaddr"
)
  .split(" ")
  .map((type) => `'${type}'::regtype`)
  .join(", ");
/** A table's columns: `s` generated and stored; PostgreSQL 18 computes others when they are read. */
const columnsOf = (generated: "" | "s"): string =>
  `(SELECT coalesce(json_agg(a.attname ORDER BY a.attnum), '[]') FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '${generated}')`;
/** A restore creates the columns that a table inherits before those of its own, whenever they were added. */
const inherits = "NOT c.relispartition AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)";
/**
 * Rows move between the partitions when they are restored if these are by the hash of an enum, which differs between
 * servers. pg_dump therefore restores such a table as a whole.
 */
const listTables = `WITH moving AS (SELECT pg_partition_root(partrelid) AS root FROM pg_partitioned_table
    WHERE (SELECT o.oid FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod
      WHERE o.opcname = 'enum_ops' AND o.opcnamespace = 'pg_catalog'::regnamespace AND m.amname = 'hash') = ANY (partclass))
  SELECT ${printable(`json_build_array(n.nspname, c.relname, NOT EXISTS (SELECT FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid NOT IN (${plainTypes})),
    CASE WHEN c.relkind = 'p' THEN 'whole' WHEN pg_partition_root(c.oid) IN (SELECT root FROM moving) THEN 'part' ELSE 'table' END,
    CASE WHEN EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attgenerated <> '')
      OR ${inherits} THEN json_build_object('stored', ${columnsOf("")}, 'generated', ${columnsOf("s")}) END, ${inherits})`)}
  ${relations("'r', 'p'")} AND (c.relkind = 'r' OR c.oid IN (SELECT root FROM moving));`;
// Sorted, so that locks are always taken in the same order.
const listCounters = `SELECT ${printable("json_build_array(n.nspname, c.relname)")} ${relations("'S'")} ORDER BY n.nspname, c.relname;`;
/** An index of a partitioned table that lacks no partition, though the server has not noticed. */
const validOnceRestored = `(t.relkind = 'p'
    AND (SELECT count(*) FROM pg_partition_tree(i.indexrelid)) = (SELECT count(*) FROM pg_partition_tree(i.indrelid))
    AND NOT EXISTS (SELECT FROM pg_partition_tree(i.indexrelid) p JOIN pg_index l ON l.indexrelid = p.relid WHERE p.isleaf AND NOT l.indisvalid))`;
const countObjects = `SELECT json_build_object(
  'views', (SELECT count(*)::text ${relations("'v', 'm'")}),
  'partitioned tables', (SELECT count(*)::text ${relations("'p'")}),
  'indexes', (SELECT count(*)::text FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE (i.indisvalid OR ${validOnceRestored}) AND ${own} AND ${notOfExtension("pg_class", "t.oid")}),
  'constraints', (SELECT count(*)::text FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
    WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND ${own} AND ${notOfExtension("pg_constraint", "k.oid")}),
  'functions', (SELECT count(*)::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE ${own} AND ${notOfExtension("pg_proc", "p.oid")}),
  'triggers', (SELECT count(*)::text FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE NOT g.tgisinternal AND ${own} AND ${notOfExtension("pg_class", "t.oid")}),
  'large objects', (SELECT count(*)::text FROM pg_largeobject_metadata));`;

type Name = [schema: string, name: string];
const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/** `t` alone would mean a column of that name, if there is one. */
const wholeRow = "t.*";
const rowOf = (columns: string[]): string =>
  `ROW(${columns.map((column) => `t.${identifier(column)}`).join(", ")})`;
const ofValues = (row: string): string => `hash_record_extended(${row}, 0)`;
/** Hashes rows as the server prints them, by built-in functions: a cast could be the owner's. Five times slower. */
const ofText = (row: string): string => `hashtextextended(textin(record_out(${row})), 0)`;

/**
 * The checksum of the rows of all tables with generated columns, with these: a restore computes them anew, perhaps by a
 * function that has changed since. Older backups have them in each table's checksum.
 */
const generatedValues = "generated values";

/** Their number; their checksums are of their columns by name. Older backups have all columns in their own order. */
const inheritingTables = "inheriting tables";

/** `whole`: with its partitions, which are each a `part`. */
type Kind = "table" | "whole" | "part";
type Columns = { stored: string[]; generated: string[] };
/** `columns`: null if none is generated or inherited. */
type Table = { name: string; from: string; isPlain: boolean; columns: Columns | null; inherits: boolean };
const tablesAtOnce = 1000;

/**
 * Locked until the transaction ends, because a table that is truncated is empty in every snapshot.
 * @param wanted those to compare with; older backups have parts
 */
async function lockTables(session: Session, wanted?: Fingerprint): Promise<Table[]> {
  const wantedNames = wanted && new Set(wanted.tables.map(({ name }) => name));
  const listed = parsed<[...Name, isPlain: boolean, kind: Kind, columns: Columns | null, inherits: boolean]>(
    await session.ask(listTables),
  );
  const found = listed.flatMap(([schema, table, isPlain, kind, columns, inherits]) => {
    const name = `${identifier(schema)}.${identifier(table)}`;
    const isCounted = kind === "table" || (wantedNames?.has(name) ?? kind === "whole");
    return isCounted
      ? [{ name, from: kind === "whole" ? name : `ONLY ${name}`, isPlain, columns, inherits }]
      : [];
  });
  for (let at = 0; at < found.length; at += tablesAtOnce) {
    const names = found.slice(at, at + tablesAtOnce).map(({ from }) => from);
    const statement = `LOCK TABLE ${names.join(", ")} IN ACCESS SHARE MODE;`;
    await session.ask(statement).catch((error) => {
      throw unread(`One of the tables from ${found[at]?.name} on`, error);
    });
  }
  return found;
}

/** What older backups lack: a checksum for generated columns alone, and an order of inherited ones. */
type Ways = { areSeparate: boolean; areByName: boolean };
const waysOf = ({ objects }: Fingerprint): Ways => ({
  areSeparate: objects[generatedValues] !== undefined,
  areByName: objects[inheritingTables] !== undefined,
});

/** What of each row is summed: all of it, or the stored columns, and once more with the generated ones. */
function rowsOf({ columns, inherits }: Table, { areSeparate, areByName }: Ways): string[] {
  if (columns === null) return [wholeRow];
  const isGenerated = !inherits || columns.generated.length > 0;
  if (!(isGenerated ? areSeparate : areByName)) return [wholeRow];
  const inOrder = (names: string[]) => (areByName && inherits ? names.toSorted() : names);
  const stored = inOrder(columns.stored);
  return [rowOf(stored), ...(isGenerated ? [rowOf([...stored, ...inOrder(columns.generated)])] : [])];
}

async function readTables(
  session: Session,
  found: Table[],
  ways: Ways = { areSeparate: true, areByName: true },
): Promise<Pick<Fingerprint, "tables" | "objects">> {
  const tables = [];
  let generated = 0n;
  for (const table of found) {
    const { name, from, isPlain } = table;
    const sum = (row: string) => `coalesce(sum(${(isPlain ? ofValues : ofText)(row)}), 0)::text`;
    const sums = rowsOf(table, ways).map(sum);
    const statement = `SELECT json_build_array(count(*)::text, ${sums.join(", ")}) FROM ${from} t;`;
    const [line = ""] = await session.ask(statement).catch((error) => {
      throw unread(`The table ${name}`, error);
    });
    const [rows, checksum, withGenerated = "0"] = JSON.parse(line) as [string, string, string?];
    generated += BigInt(withGenerated);
    tables.push({ name, rows, checksum });
  }
  const [counted = "{}"] = await session.ask(countObjects);
  const objects = JSON.parse(counted) as Record<string, string>;
  if (ways.areSeparate) objects[generatedValues] = String(generated);
  if (ways.areByName) objects[inheritingTables] = String(found.filter(({ inherits }) => inherits).length);
  const [large = ""] = await session.ask(
    "SELECT json_build_array(count(*)::text, coalesce(sum(hashtextextended(loid::text || ':' || pageno::text || ':' || encode(data, 'hex'), 0)), 0)::text) FROM pg_largeobject;",
  );
  const [rows, checksum] = JSON.parse(large) as [string, string];
  tables.push({ name: "large objects", rows, checksum });
  return { tables: tables.sort(byName), objects };
}

/** pg_dump would wait for a locked view without a limit. */
const awaitViews = (session: Session): Promise<unknown> =>
  session.ask(`SELECT count(pg_get_viewdef(c.oid)) ${relations("'v', 'm'")};`).catch((error) => {
    throw unread("One of the views", error);
  });

const countersAtOnce = 100;

async function readCounters(session: Session, found: Name[]): Promise<{ name: string; value: string }[]> {
  const names = found.map(([schema, counter]) => `${identifier(schema)}.${identifier(counter)}`);
  const values: string[] = [];
  for (let at = 0; at < names.length; at += countersAtOnce) {
    const some = names.slice(at, at + countersAtOnce);
    const statements = some.map((name) => `SELECT last_value FROM ${name};`).join("\n");
    const lines = await session.ask(statements).catch((error) => {
      throw unread(`One of the sequences from ${some[0]} on`, error);
    });
    values.push(...lines);
  }
  return names.map((name, index) => ({ name, value: values[index] ?? "" }));
}

/** Reasons for a failed read, by SQLSTATE or pg_dump's words. The server's own message could contain data. */
const reasons: [codes: RegExp, reason: string][] = [
  [
    /\b53200\b|out of (?:shared )?memory/,
    "the server ran out of memory: a larger pack has more, also for locks on many tables",
  ],
  [
    /\b55P03\b|lock timeout|could not obtain lock/,
    "something kept it locked for more than a minute: try again",
  ],
  [/\b53100\b|No space left/, "the host's disk is full: try again later"],
  [/\b53300\b|too many c|connection slots/, "all of the database's connections are in use: try again"],
  [/\b42501\b|permission denied/, "Berth's own role is not allowed to read it"],
  [/\bXX00[12]\b|invalid page|missing chunk/, "its data files are damaged"],
  [/\b42P01\b|\b42809\b|does not exist/, "it was changed or dropped meanwhile: try again"],
];

function unread(what: string, error: unknown): unknown {
  const said = String(error);
  const code = /ERROR:\s+([0-9A-Z]{5})\b/.exec(said)?.[1];
  const known = reasons.find(([says]) => says.test(said))?.[1];
  if (code === undefined && known === undefined) return error;
  const reason = known ?? `PostgreSQL refuses it with code ${code}`;
  return new JobError(`${what} could not be read: ${reason}.`, { cause: error });
}

/** Names the table at which pg_dump failed; nothing else of its message is used. */
function undumped(error: unknown): unknown {
  const table = /table "([^"\n]{1,200})"/.exec(String(error))?.[1];
  return unread(table === undefined ? "The database" : `The table ${table}`, error);
}

/**
 * Settings of the database for all roles, except those that select the role, and those of an extension that is no
 * longer there: they have no effect, and cannot be set again.
 */
const listSettings = `SELECT ${printable("json_build_array(name, substr(c, strpos(c, '=') + 1))")}
  FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) c, split_part(c, '=', 1) name
  WHERE d.datname = current_database() AND s.setrole = 0 AND name NOT IN ('role', 'session_authorization')
    AND (strpos(name, '.') = 0 OR EXISTS (SELECT FROM pg_proc WHERE probin = '$libdir/' || split_part(name, '.', 1)))
  UNION ALL SELECT ${printable(`json_build_array('${databaseComment}', description)`)}
  FROM pg_shdescription WHERE classoid = 'pg_database'::regclass AND objoid = (SELECT oid FROM pg_database WHERE datname = current_database());`;

const listExtensions = `SELECT ${printable("to_json(extname)")} FROM pg_extension ORDER BY extname;`;

async function readMore(session: Session): Promise<Pick<Fingerprint, "settings" | "extensions">> {
  const set = parsed<[name: string, value: string]>(await session.ask(listSettings));
  return {
    settings: set.map(([name, value]) => ({ name, value })).sort(byName),
    extensions: parsed<string>(await session.ask(listExtensions)),
  };
}

export const postgresql: Copier = {
  // The statements of a restore are none of the owner's.
  filling: ["-c", "pg_stat_statements.track=none"],
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
      await session.ask(begin);
      const [snapshot = ""] = await session.ask("SELECT pg_export_snapshot();");
      const names = parsed<Name>(await session.ask(listCounters));
      const more = await readMore(session);
      const before = await readCounters(session, names);
      const tables = await lockTables(session);
      await awaitViews(session);
      const dump = await server.engine.pipe(server.id, {
        command: [
          "pg_dump",
          `--username=${backupReader}`,
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
      const reading = readTables(session, tables);
      const dumped = take(outputOf("pg_dump", dump)).catch(async (error) => {
        // The session that held the snapshot has ended and has the cause.
        if (/snapshot/.test(String(error))) await reading;
        throw undumped(error);
      });
      try {
        const [held] = await Promise.all([reading, dumped]);
        const after = await readCounters(session, names);
        await session.end();
        const counters = before.map(({ name, value }, index) => ({
          name,
          from: value,
          to: after[index]?.value ?? value,
        }));
        return { ...held, counters: counters.sort(byName), ...more };
      } catch (error) {
        dump.close();
        await dumped.catch(() => undefined);
        throw error;
      }
    } finally {
      session.close();
    }
  },

  async fingerprint(server, wanted) {
    const session = await open(server);
    try {
      await session.ask(begin);
      const held = await readTables(session, await lockTables(session, wanted), waysOf(wanted));
      const counters = await readCounters(session, parsed<Name>(await session.ask(listCounters)));
      const more = await readMore(session);
      await session.end();
      return {
        ...held,
        counters: counters.map(({ name, value }) => ({ name, from: value, to: value })).sort(byName),
        ...more,
      };
    } finally {
      session.close();
    }
  },

  fill,
  refill,
  computedAnew: [generatedValues],
};

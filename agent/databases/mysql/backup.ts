import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { Fingerprint } from "../../../protocol/agent/backups.ts";
import {
  employsReader,
  everythingIn,
  givesBack,
  hasReader,
  identifier,
  literal,
  readerOf,
  goingOn,
  readsSequences,
} from "./server.ts";
import type { Piped } from "../../docker/engine.ts";
import { ServerRefusal } from "../server-refusal.ts";
import { JobError } from "../../job.ts";
import type { Copier, Server } from "../backups/copier.ts";
import { demandSuccess, endedFirst, feed, UnfitError, withHead } from "../backups/copier.ts";
import { Session } from "../backups/session.ts";
import { strayMark } from "../backups/strays.ts";

type User = { name: string; password: string };

/** Like the reader, root signs in over the container's own socket only. */
const rootOf = ({ spec }: Server): User => ({ name: "root", password: spec.adminPassword });
/** The maximum: in a dump a row is one statement, and escaping may double its bytes. */
const largest = "--max-allowed-packet=1G";
const optionsOf = ({ name }: User) => [
  `--user=${name}`,
  "--protocol=socket",
  "--default-character-set=utf8mb4",
  largest,
];
const envOf = ({ password }: User): string[] => [strayMark, givesBack, `MYSQL_PWD=${password}`];

const open = async (server: Server, user: User): Promise<Session> =>
  new Session(
    await server.engine.pipe(server.id, {
      command: ["mariadb", ...optionsOf(user), "--batch", "--raw", "--skip-column-names", "--unbuffered"],
      env: envOf(user),
    }),
    (word) => `SELECT '${word}';`,
  );

const lockedFor = "something kept it locked for more than a minute: try again";
const saysLocked = (said: string): boolean => said.includes("Lock wait timeout exceeded");
const refusedLock = (error: unknown): unknown =>
  error instanceof ServerRefusal && saysLocked(error.reason)
    ? new JobError(`The database could not be read: ${lockedFor}.`, { cause: error })
    : error;

/** Returns the server's reader; creates it if an earlier agent started the server. */
async function employReader(root: Session, { spec }: Server): Promise<User> {
  const [found] = await root.ask(hasReader(spec));
  if (found !== "1") await root.ask(employsReader(spec));
  return readerOf(spec.adminPassword);
}

const begin = `
SET SESSION time_zone = '+00:00', max_statement_time = 0, lock_wait_timeout = 60, sql_mode = '';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;`;

const parsed = <T>(lines: string[]): T[] => lines.map((line) => JSON.parse(line) as T);

/**
 * `versions`: the columns that distinguish versions of a row beside the listed ones; null if only the present one is
 * kept.
 */
type Table = { name: string; columns: string[]; versions: string[] | null };

const listColumns = (schema: string): string => `
SELECT JSON_ARRAY(c.table_name, c.column_name, t.table_type = 'SYSTEM VERSIONED', COALESCE(c.generation_expression = 'ROW START', 0))
FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema = ${schema} AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
ORDER BY c.table_name, c.ordinal_position;`;

type ListedColumn = [table: string, column: string, isVersioned: 0 | 1, isRowStart: 0 | 1];

const tablesOf = (columns: ListedColumn[]): Table[] =>
  Array.from(
    Map.groupBy(columns, ([table]) => table),
    ([name, its]) => {
      const areListed = its.some(([, , , isRowStart]) => isRowStart === 1);
      const versions = areListed ? [] : ["row_start", "row_end"];
      return {
        name,
        columns: its.map(([, column]) => column),
        versions: its[0]?.[2] === 1 ? versions : null,
      };
    },
  );

/** Events that the server drops at their end, and creates no more after it: a copy may lack them. */
const endingEvents = "events that end";
const ends = "(on_completion = 'NOT PRESERVE' AND (execute_at IS NOT NULL OR ends IS NOT NULL))";
/** What may be missing by now is not compared. Older backups count all events as one. */
const exceptEnded = (
  found: Fingerprint["objects"],
  wanted: Fingerprint["objects"],
): Fingerprint["objects"] => {
  const { [endingEvents]: ending, events = "0" } = wanted;
  return { ...found, ...(ending === undefined && { events }), [endingEvents]: ending ?? "0" };
};

/** The database's objects, read outside of any snapshot; `omitted`: views that are not counted. */
async function readShape(session: Session, databaseName: string, omitted: string[]) {
  const schema = literal(databaseName);
  const except = ["", ...omitted].map(literal).join(", ");
  const shape = tablesOf(parsed(await session.ask(listColumns(schema))));
  const [objects = "{}"] = await session.ask(`SELECT JSON_OBJECT(
    'views', CAST((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ${schema} AND table_type = 'VIEW'
      AND table_name NOT IN (${except})) AS CHAR),
    'routines', CAST((SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ${schema}) AS CHAR),
    'triggers', CAST((SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = ${schema}) AS CHAR),
    'events', CAST((SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ${schema} AND NOT ${ends}) AS CHAR),
    '${endingEvents}', CAST((SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ${schema} AND ${ends}) AS CHAR),
    'sequences', CAST((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ${schema} AND table_type = 'SEQUENCE') AS CHAR),
    'index columns', CAST((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = ${schema}) AS CHAR),
    'constraints', CAST((SELECT COUNT(*) FROM information_schema.table_constraints WHERE table_schema = ${schema}) AS CHAR));`);
  const [[characterSet, collation, comment] = ["", "", ""]] = parsed<[string, string, string]>(
    await session.ask(
      `SELECT JSON_ARRAY(default_character_set_name, default_collation_name, schema_comment) FROM information_schema.schemata WHERE schema_name = ${schema};`,
    ),
  );
  const settings = [
    { name: "character set", value: characterSet },
    { name: "collation", value: collation },
    { name: "comment", value: comment },
  ];
  return { shape, objects: JSON.parse(objects) as Record<string, string>, settings };
}

/**
 * Routines, triggers and events keep the settings of their creation; new tables and routines take them from the
 * database.
 */
function setAgain(databaseName: string, settings: NonNullable<Fingerprint["settings"]>): string {
  const of = (wanted: string) => literal(settings.find(({ name }) => name === wanted)?.value ?? "");
  return `ALTER DATABASE ${identifier(databaseName)} CHARACTER SET ${of("character set")} COLLATE ${of("collation")} COMMENT ${of("comment")};`;
}

/** `definition`: null if the server does not show it, as of a view that refers to itself. */
type View = { name: string; definition: string | null };

/**
 * Views that cannot be opened, because what they refer to is missing or their definer lacks rights: mariadb-dump cannot
 * copy them, and they must not prevent copying the rest.
 */
async function brokenViews(session: Session, databaseName: string): Promise<View[]> {
  const list = `SELECT JSON_ARRAY(table_name) FROM information_schema.tables WHERE table_schema = ${literal(databaseName)} AND table_type = 'VIEW'`;
  const views = parsed<[string]>(await session.ask(`${list};`)).map(([name]) => name);
  const broken = [];
  // In the database itself, the server writes definitions without its name.
  await session.ask(`USE ${identifier(databaseName)};`);
  for (const name of views) {
    const said = await session.ask(`CHECK TABLE ${identifier(name)};`);
    if (said.some((line) => line.endsWith("\tOK"))) continue;
    if (said.some(saysLocked)) throw new JobError(`The view ${name} could not be read: ${lockedFor}.`);
    const isDropped = (await session.ask(`${list} AND table_name = ${literal(name)};`)).length === 0;
    if (isDropped) continue;
    const shown = (await session.ask(goingOn(`SHOW CREATE VIEW ${identifier(name)};`))).join("\n");
    // Name, definition, character set, collation.
    const end = shown.lastIndexOf("\t", shown.lastIndexOf("\t") - 1);
    broken.push({ name, definition: shown === "" ? null : shown.slice(name.length + 1, end) });
  }
  return broken;
}

/**
 * Follows a dump and creates those that can be created. They may need each other in any order: each pass creates at
 * least one.
 */
const createdIfPossible = (definitions: string[]): string => `
SET NAMES utf8mb4;
SET sql_mode = '';
${goingOn(`FOR pass IN 1..${definitions.length} DO
    ${definitions.map((definition) => `EXECUTE IMMEDIATE ${literal(definition)};`).join("\n    ")}
  END FOR;`)}`;

const mode = "SQL_MODE='NO_AUTO_VALUE_ON_ZERO";
const leniently = `${mode},ALLOW_INVALID_DATES' */;
/*M!100201 SET @OLD_CHECKS=@@check_constraint_checks, check_constraint_checks=0 */;
/*M!100201 SET @OLD_STRICT=@@innodb_strict_mode, innodb_strict_mode=0`;
const strictlyAgain =
  "/*M!100201 SET check_constraint_checks=@OLD_CHECKS, innodb_strict_mode=@OLD_STRICT */;\n";
const headerBytesMax = 4096;
const eased = (header: Buffer) =>
  Buffer.from(header.toString("latin1").replace(`${mode}'`, leniently), "latin1");

/**
 * A table may hold what its settings forbid by now: rows against a later constraint, dates that do not exist, more columns than fit a
 * page. The dump's own header gives way to that wherever it is loaded.
 */
async function* lenient(dump: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* withHead(dump, headerBytesMax, eased);
  yield Buffer.from(strictlyAgain);
}

async function* withViews(dump: AsyncIterable<Buffer>, views: View[]): AsyncGenerator<Buffer> {
  yield* dump;
  const definitions = views.flatMap(({ definition }) => definition ?? []);
  if (definitions.length > 0) yield Buffer.from(createdIfPossible(definitions));
}

/** The fingerprint names views that a copy may lack. */
const omittedMark = "omitted view ";
const omittedIn = (objects: Fingerprint["objects"]): string[] =>
  Object.keys(objects).flatMap((key) => (key.startsWith(omittedMark) ? [key.slice(omittedMark.length)] : []));
const markOmitted = (names: string[]): Fingerprint["objects"] =>
  Object.fromEntries(names.map((name) => [`${omittedMark}${name}`, "1"]));

/** Objects that cannot be copied, by name, with what the owner can do. */
const uncopyable: ((schema: string) => string)[] = [
  // It searches for a longer delimiter forever.
  (schema) => `
SELECT CONCAT('mariadb-dump cannot copy the event ', event_name, ', as it has two semicolons in a row: write it without.') AS said
FROM information_schema.events WHERE event_schema = ${schema} AND CONCAT_WS(' ', event_name, event_definition, event_comment) LIKE '%;;%'`,
  // InnoDB quotes the name without escaping.
  (schema) => `
SELECT CONCAT('The server cannot write down the foreign key ', constraint_name, ' of the table ', table_name, ', as a name in it has a backtick: name it without.') AS said
FROM information_schema.key_column_usage WHERE table_schema = ${schema} AND referenced_table_name IS NOT NULL
  AND CONCAT(constraint_name, column_name, referenced_table_name, referenced_column_name) LIKE '%\`%'`,
  // The server rejects such a name in the view's stand-in table.
  (schema) => `
SELECT CONCAT('mariadb-dump cannot copy the view ', v.table_name, ', as the name of one of its columns is nothing but control characters: name it otherwise.') AS said
FROM information_schema.views v JOIN information_schema.columns c ON c.table_schema = v.table_schema AND c.table_name = v.table_name
WHERE v.table_schema = ${schema} AND c.column_name NOT REGEXP '[^[:cntrl:]]'`,
  (schema) => `
SELECT CONCAT('mariadb-dump cannot copy the history of the table ', table_name, ', as it is of transactions: let it be of timestamps, or drop it.') AS said
FROM information_schema.columns WHERE table_schema = ${schema} AND generation_expression = 'ROW START' AND data_type = 'bigint'`,
];

async function refuseUncopyable(session: Session, databaseName: string): Promise<void> {
  for (const find of uncopyable) {
    const [found] = parsed<[string]>(
      await session.ask(`SELECT JSON_ARRAY(said) FROM (${find(literal(databaseName))} LIMIT 1) f;`),
    );
    if (found) throw new JobError(found[0]);
  }
}

const checksumNow = "3";
type Checksums = { value: (column: string) => string; ofHistory: boolean };
const md5 = (column: string): string => `COALESCE(MD5(${identifier(column)}), 'NULL')`;
/**
 * Row checksums by the fingerprint's version. Backups with the first version still exist; it takes many times a row's
 * memory.
 */
const checksums: Record<string, Checksums> & Record<typeof checksumNow, Checksums> = {
  "1": { value: (column) => `QUOTE(${identifier(column)})`, ofHistory: false },
  "2": { value: md5, ofHistory: false },
  "3": { value: md5, ofHistory: true },
};
const checksumKey = "checksum version";

async function readTables(
  session: Session,
  databaseName: string,
  shape: Table[],
  version: string = checksumNow,
): Promise<Fingerprint["tables"]> {
  const { value, ofHistory } = checksums[version] ?? checksums[checksumNow];
  const tables = [];
  for (const { name, columns, versions } of shape) {
    const history = ofHistory ? versions : null;
    const row = [...columns, ...(history ?? [])].map(value).join(", ");
    const hash = `CAST(CONV(LEFT(MD5(CONCAT_WS(',', ${row})), 15), 16, 10) AS UNSIGNED)`;
    const from = `${identifier(databaseName)}.${identifier(name)}${history ? " FOR SYSTEM_TIME ALL" : ""}`;
    const [line = ""] = await session.ask(
      `SELECT JSON_ARRAY(CAST(COUNT(*) AS CHAR), CAST(COALESCE(SUM(${hash}), 0) AS CHAR)) FROM ${from};`,
    );
    const [rows, checksum] = JSON.parse(line) as [string, string];
    tables.push({ name, rows, checksum });
  }
  return tables;
}

const pauseMs = 50;
const triesMax = 600;

/**
 * Waits until the reader has a second transaction, which means that the dump has its snapshot, or the dump has ended.
 */
async function untilDumpSees(root: Session, dump: Piped, reader: User): Promise<void> {
  for (let tries = 0, seen = 0; tries < triesMax; tries++) {
    if (!(await dump.isRunning())) return;
    const [count] = await root.ask(
      `SELECT COUNT(*) FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id WHERE p.user = ${literal(reader.name)};`,
    );
    // Twice, because it is listed just before it has its snapshot.
    if (Number(count) > 1 && ++seen > 1) return;
    await delay(pauseMs);
  }
  throw new Error("mariadb-dump did not begin");
}

const waiting = (reader: User): string => `
SELECT JSON_ARRAY(info) FROM information_schema.processlist
WHERE user = ${literal(reader.name)} AND state LIKE 'Waiting for % lock' AND time >= 60 LIMIT 1;`;

/** mariadb-dump would wait for a lock for a day. @throws JobError once it has waited for a minute */
async function unlessLocked(root: Session, reader: User, dumped: Promise<unknown>): Promise<void> {
  const over = dumped.then(() => true);
  over.catch(() => undefined);
  do {
    const [found] = parsed<[statement: string]>(await root.ask(waiting(reader)));
    if (found) {
      const table = /\bfrom (`(?:[^`]|``)+`)/i.exec(found[0])?.[1];
      throw new JobError(`${table ? `The table ${table}` : "The database"} could not be read: ${lockedFor}.`);
    }
  } while (!(await Promise.race([delay(1000, false), over])));
}

export const mysql: Copier = {
  // Events must not run in a copy that is to be compared.
  filling: [largest, "--event-scheduler=OFF"],
  // Client and server hold a row several times over.
  roomyMb: (packMb) => packMb * 2 + 512,
  hasty: ["--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"],

  /** Writes wait until both sessions, the dump's and the counting one, have begun the same snapshot. */
  async copy(server, take) {
    const { engine, id, spec } = server;
    const root = await open(server, rootOf(server));
    let reading: Session | undefined;
    try {
      await root.ask(begin);
      await refuseUncopyable(root, spec.databaseName);
      const reader = await employReader(root, server);
      const session = (reading = await open(server, reader));
      await session.ask(begin);
      let broken = await brokenViews(session, spec.databaseName);
      if (broken.length > 0) {
        await root.ask(readsSequences(spec.databaseName));
        broken = await brokenViews(session, spec.databaseName);
      }
      const omitted = broken.map(({ name }) => name);
      await root.ask("FLUSH TABLES WITH READ LOCK;");
      const { shape, objects, settings } = await readShape(root, spec.databaseName, omitted);
      await session.ask("START TRANSACTION WITH CONSISTENT SNAPSHOT;");
      const dump = await engine.pipe(id, {
        command: endedFirst([
          "mariadb-dump",
          ...optionsOf(reader),
          "--single-transaction",
          // Whoever loads a table under LOCK TABLES could not use a sequence in its defaults.
          "--skip-add-locks",
          "--quick",
          "--routines",
          "--triggers",
          "--events",
          "--dump-history",
          "--hex-blob",
          "--no-tablespaces",
          "--skip-comments",
          ...omitted.map((view) => `--ignore-table=${spec.databaseName}.${view}`),
          spec.databaseName,
        ]),
        env: envOf(reader),
      });
      const gzip = createGzip({ level: 1 });
      const compressed = pipeline(
        Readable.from(withViews(lenient(dump.output), broken), { objectMode: false }),
        gzip,
      );
      const dumped = Promise.all([take(gzip), compressed]).then(() => demandSuccess("mariadb-dump", dump));
      dumped.catch(() => undefined);
      try {
        await untilDumpSees(root, dump, reader);
        await root.ask("UNLOCK TABLES;");
        await unlessLocked(root, reader, dumped);
        // Not concurrently: both hold large rows several times over, and they share the pack's CPU anyway.
        const tables = await readTables(session, spec.databaseName, shape);
        await session.end();
        await root.end();
        return {
          tables,
          objects: { ...objects, ...markOmitted(omitted), [checksumKey]: checksumNow },
          counters: [],
          settings,
        };
      } catch (error) {
        dump.close();
        await dumped.catch(() => undefined);
        throw error;
      }
    } catch (error) {
      throw refusedLock(error);
    } finally {
      reading?.close();
      root.close();
    }
  },

  async fingerprint(server, { objects: wanted }) {
    const version = wanted[checksumKey];
    const root = await open(server, rootOf(server));
    let reading: Session | undefined;
    try {
      const reader = await employReader(root, server);
      const session = (reading = await open(server, reader));
      await session.ask(begin);
      const omitted = omittedIn(wanted);
      const { shape, objects, settings } = await readShape(root, server.spec.databaseName, omitted);
      const tables = await readTables(session, server.spec.databaseName, shape, version ?? "1");
      await session.end();
      await root.end();
      if (version !== undefined) objects[checksumKey] = version;
      return {
        tables,
        objects: { ...exceptEnded(objects, wanted), ...markOmitted(omitted) },
        counters: [],
        settings,
      };
    } finally {
      reading?.close();
      root.close();
    }
  },

  async fill(server, bytes, { databaseName, settings }) {
    const { engine, id, spec } = server;
    const root = rootOf(server);
    const session = await open(server, root);
    // Before the client signs in, because it reads the settings only once.
    if (settings) await session.ask(setAgain(spec.databaseName, settings));
    const client = await engine.pipe(id, {
      // In binary mode the client interprets no client commands in the data.
      command: endedFirst(["mariadb", ...optionsOf(root), "--batch", "--binary-mode", spec.databaseName]),
      env: envOf(root),
    });
    const gunzip = createGunzip();
    const unpacked = pipeline(Readable.from(bytes, { objectMode: false }), gunzip);
    unpacked.catch(() => undefined);
    try {
      const dump = renamed(gunzip, databaseName, spec.databaseName);
      await feed("mariadb", client, withDefiners(dump, session, spec.databaseName));
      await unpacked;
    } catch (error) {
      // An error in the bytes is more informative than its effect on unpacking.
      await unpacked.catch((cause: NodeJS.ErrnoException) => {
        if (cause.code?.startsWith("Z_")) throw new UnfitError(cause.message, { cause });
        // We aborted it because the program had rejected earlier input.
        if (cause.code !== "ABORT_ERR" && cause.code !== "ERR_STREAM_PREMATURE_CLOSE") throw cause;
      });
      throw error;
    } finally {
      session.close();
    }
  },
};

const mark = "DEFINER=`";
/** Matches Berth's logins and their role; only complete ones, not those cut off by the end of a chunk. */
const definer = /^([a-z][a-z0-9_]{0,79})`(@`%`|(?=[ *]))/;
const definerBytesMax = 90;
/** A database has had fewer passwords; its rows may contain anything. */
const definersMax = 10_000;

/**
 * Passes on a dump's bytes and creates each definer before the statement that needs it. Views and triggers run with
 * their definer's rights, so locked users replace logins that no longer exist. A match within row data creates an
 * unused user, or none.
 */
async function* withDefiners(
  bytes: AsyncIterable<Buffer>,
  root: Session,
  databaseName: string,
): AsyncGenerator<Buffer> {
  const made = new Set<string>();
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of bytes) {
    const text = Buffer.concat([rest, chunk]);
    for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
      const from = at + mark.length;
      const found = definer.exec(text.toString("latin1", from, from + definerBytesMax));
      if (found === null || made.has(found[0]) || made.size >= definersMax) continue;
      made.add(found[0]);
      const [, name = "", host] = found;
      const account = host === "" ? identifier(name) : `${literal(name)}@'%'`;
      const create =
        host === ""
          ? `CREATE ROLE IF NOT EXISTS ${account}`
          : `CREATE USER IF NOT EXISTS ${account} ACCOUNT LOCK`;
      await root.ask(
        goingOn(`${create}; GRANT ALL PRIVILEGES ON ${everythingIn(databaseName)} TO ${account};`),
      );
    }
    rest = text.subarray(-(mark.length + definerBytesMax));
    yield chunk;
  }
}

/** A table's rows are between two of these. */
const keysSwitched = "\n/*!40000 ALTER TABLE `";

/** Renames the database within a dump's definitions, which may refer to it by name. Rows are unchanged. */
async function* renamed(bytes: AsyncIterable<Buffer>, from: string, to: string): AsyncGenerator<Buffer> {
  if (from === to) return yield* bytes;
  const own = new RegExp(
    `(?<![\\w\`"])([\`"]?)${from}\\1(?=\\s*\\.)|(?<=ALTER DATABASE \`)${from}(?=\`)`,
    "g",
  );
  const said = (text: string, areRows: boolean) =>
    Buffer.from(areRows ? text : text.replace(own, `$1${to}$1`), "latin1");
  let rest = "";
  let areRows = false;
  for await (const chunk of bytes) {
    rest += chunk.toString("latin1");
    for (;;) {
      const end = rest.indexOf(keysSwitched);
      // Definitions are processed by whole lines.
      const soFar = areRows ? Math.max(0, rest.length - keysSwitched.length) : rest.lastIndexOf("\n");
      const upTo = end >= 0 ? end + 1 : Math.max(0, soFar);
      yield said(rest.slice(0, upTo), areRows);
      rest = rest.slice(upTo);
      if (end < 0) break;
      areRows = !areRows;
    }
  }
  yield said(rest, areRows);
}

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
} from "./server.ts";
import type { Piped } from "../../docker/engine.ts";
import { JobError } from "../../job.ts";
import type { Copier, Server } from "../backups/copier.ts";
import { demandSuccess, endedFirst, feed, UnfitError } from "../backups/copier.ts";
import { Session } from "../backups/session.ts";
import { strayMark } from "../backups/strays.ts";

type User = { name: string; password: string };

/** Signs in over the container's own socket only, as the reader does. */
const rootOf = ({ spec }: Server): User => ({ name: "root", password: spec.adminPassword });
/** In a dump a row is one statement, and each of its bytes may be two: as much as there can be. */
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

/** The server's reader, made where an earlier agent started it. */
async function employReader(root: Session, { spec }: Server): Promise<User> {
  const [found] = await root.ask(hasReader(spec));
  if (found !== "1") await root.ask(employsReader(spec));
  return readerOf(spec.adminPassword);
}

const begin = `
SET SESSION time_zone = '+00:00', max_statement_time = 0, lock_wait_timeout = 60, sql_mode = '';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;`;

type Column = [table: string, column: string];
const parsed = <T>(lines: string[]): T[] => lines.map((line) => JSON.parse(line) as T);

/** What there is, outside of any snapshot. */
async function readShape(session: Session, databaseName: string) {
  const schema = literal(databaseName);
  const columns = parsed<Column>(
    await session.ask(`SELECT JSON_ARRAY(c.table_name, c.column_name) FROM information_schema.columns c
      JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
      WHERE c.table_schema = ${schema} AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
      ORDER BY c.table_name, c.ordinal_position;`),
  );
  const [objects = "{}"] = await session.ask(`SELECT JSON_OBJECT(
    'views', CAST((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ${schema} AND table_type = 'VIEW') AS CHAR),
    'routines', CAST((SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ${schema}) AS CHAR),
    'triggers', CAST((SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = ${schema}) AS CHAR),
    'events', CAST((SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ${schema}) AS CHAR),
    'sequences', CAST((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ${schema} AND table_type = 'SEQUENCE') AS CHAR),
    'index columns', CAST((SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = ${schema}) AS CHAR),
    'constraints', CAST((SELECT COUNT(*) FROM information_schema.table_constraints WHERE table_schema = ${schema}) AS CHAR));`);
  return { columns, objects: JSON.parse(objects) as Record<string, string> };
}

/** Views of what is not there any more: nobody could copy them, and the rest is to be copied all the same. */
async function brokenViews(session: Session, databaseName: string): Promise<string[]> {
  const views = parsed<[string]>(
    await session.ask(
      `SELECT JSON_ARRAY(table_name) FROM information_schema.tables WHERE table_schema = ${literal(databaseName)} AND table_type = 'VIEW';`,
    ),
  ).map(([name]) => name);
  const broken = [];
  for (const view of views) {
    const said = await session.ask(`CHECK TABLE ${identifier(databaseName)}.${identifier(view)};`);
    if (!said.some((line) => line.endsWith("\tOK"))) broken.push(view);
  }
  return broken;
}

/** mariadb-dump never ends over one of these: it looks for a delimiter longer than it, and tries the same again and again. */
async function refuseEndlessEvents(session: Session, databaseName: string): Promise<void> {
  const [found] = parsed<[string]>(
    await session.ask(
      `SELECT JSON_ARRAY(event_name) FROM information_schema.events WHERE event_schema = ${literal(databaseName)} AND CONCAT_WS(' ', event_name, event_definition, event_comment) LIKE '%;;%' LIMIT 1;`,
    ),
  );
  if (found)
    throw new JobError(
      `mariadb-dump cannot copy the event ${found[0]}, as it has two semicolons in a row: write it without.`,
    );
}

/** How rows were made checksums of, by what the fingerprint says of it. Backups outlive the first, which takes many times a row's memory. */
const values = {
  "1": (column: string) => `QUOTE(${identifier(column)})`,
  "2": (column: string) => `COALESCE(MD5(${identifier(column)}), 'NULL')`,
};
const valuesKey = "checksum version";
const valuesNow = { [valuesKey]: "2" };

async function readTables(
  session: Session,
  databaseName: string,
  columns: Column[],
  version: keyof typeof values = "2",
): Promise<Fingerprint["tables"]> {
  const tables = [];
  for (const [table, itsColumns] of Map.groupBy(columns, ([name]) => name)) {
    const row = itsColumns.map(([, column]) => values[version](column)).join(", ");
    const hash = `CAST(CONV(LEFT(MD5(CONCAT_WS(',', ${row})), 15), 16, 10) AS UNSIGNED)`;
    const [line = ""] = await session.ask(
      `SELECT JSON_ARRAY(CAST(COUNT(*) AS CHAR), CAST(COALESCE(SUM(${hash}), 0) AS CHAR)) FROM ${identifier(databaseName)}.${identifier(table)};`,
    );
    const [rows, checksum] = JSON.parse(line) as [string, string];
    tables.push({ name: table, rows, checksum });
  }
  return tables;
}

const pauseMs = 50;
const triesMax = 600;

/** Once there is a second transaction of the reader's, the dump has its view of the data; or it is over. */
async function untilDumpSees(root: Session, dump: Piped, reader: User): Promise<void> {
  for (let tries = 0, seen = 0; tries < triesMax; tries++) {
    if (!(await dump.isRunning())) return;
    const [count] = await root.ask(
      `SELECT COUNT(*) FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id WHERE p.user = ${literal(reader.name)};`,
    );
    // Twice, as it is listed a moment before it has its view.
    if (Number(count) > 1 && ++seen > 1) return;
    await delay(pauseMs);
  }
  throw new Error("mariadb-dump did not begin");
}

export const mysql: Copier = {
  // Client and server hold a row several times over. Events run where the database does, not in a copy that is to be compared.
  roomy: { options: [largest, "--event-scheduler=OFF"], memoryMb: (packMb) => packMb * 2 + 512 },
  hasty: ["--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"],

  /** Writes wait for the moment in which both sessions, the dump's and the one that counts, begin to see the same. */
  async copy(server, take) {
    const { engine, id, spec } = server;
    const root = await open(server, rootOf(server));
    let reading: Session | undefined;
    try {
      await root.ask(begin);
      await refuseEndlessEvents(root, spec.databaseName);
      const reader = await employReader(root, server);
      const session = (reading = await open(server, reader));
      await session.ask(begin);
      const broken = await brokenViews(session, spec.databaseName);
      await root.ask("FLUSH TABLES WITH READ LOCK;");
      const { columns, objects } = await readShape(root, spec.databaseName);
      await session.ask("START TRANSACTION WITH CONSISTENT SNAPSHOT;");
      const dump = await engine.pipe(id, {
        command: endedFirst([
          "mariadb-dump",
          ...optionsOf(reader),
          "--single-transaction",
          "--quick",
          "--routines",
          "--triggers",
          "--events",
          "--hex-blob",
          "--no-tablespaces",
          "--skip-comments",
          ...broken.map((view) => `--ignore-table=${spec.databaseName}.${view}`),
          spec.databaseName,
        ]),
        env: envOf(reader),
      });
      const gzip = createGzip({ level: 1 });
      const compressed = pipeline(Readable.from(dump.output, { objectMode: false }), gzip);
      const dumped = Promise.all([take(gzip), compressed]).then(() => demandSuccess("mariadb-dump", dump));
      dumped.catch(() => undefined);
      try {
        await untilDumpSees(root, dump, reader);
        await root.ask("UNLOCK TABLES;");
        await dumped;
        // Not beside it: each holds large rows several times over, and they share the pack's processors anyway.
        const tables = await readTables(session, spec.databaseName, columns);
        await session.end();
        await root.end();
        const views = String(Number(objects["views"]) - broken.length);
        return { tables, objects: { ...objects, views, ...valuesNow }, counters: [] };
      } catch (error) {
        dump.close();
        await dumped.catch(() => undefined);
        throw error;
      }
    } finally {
      reading?.close();
      root.close();
    }
  },

  async fingerprint(server, { objects: wanted }) {
    const isNow = wanted[valuesKey] === valuesNow[valuesKey];
    const root = await open(server, rootOf(server));
    let reading: Session | undefined;
    try {
      const reader = await employReader(root, server);
      const session = (reading = await open(server, reader));
      await session.ask(begin);
      const { columns, objects } = await readShape(root, server.spec.databaseName);
      const tables = await readTables(session, server.spec.databaseName, columns, isNow ? "2" : "1");
      await session.end();
      await root.end();
      return { tables, objects: { ...objects, ...(isNow && valuesNow) }, counters: [] };
    } finally {
      reading?.close();
      root.close();
    }
  },

  async fill(server, bytes) {
    const { engine, id, spec } = server;
    const root = rootOf(server);
    const client = await engine.pipe(id, {
      // Binary mode: the client takes no commands of its own out of the data.
      command: endedFirst(["mariadb", ...optionsOf(root), "--batch", "--binary-mode", spec.databaseName]),
      env: envOf(root),
    });
    const session = await open(server, root);
    const gunzip = createGunzip();
    const unpacked = pipeline(Readable.from(bytes, { objectMode: false }), gunzip);
    unpacked.catch(() => undefined);
    try {
      await feed("mariadb", client, withDefiners(gunzip, session, server.spec.databaseName));
      await unpacked;
    } catch (error) {
      // What went wrong with the bytes says more than what unpacking made of it.
      await unpacked.catch((cause: NodeJS.ErrnoException) => {
        if (cause.code?.startsWith("Z_")) throw new UnfitError(cause.message, { cause });
        // Ended by us, as the program had refused what came before.
        if (cause.code !== "ABORT_ERR" && cause.code !== "ERR_STREAM_PREMATURE_CLOSE") throw cause;
      });
      throw error;
    } finally {
      session.close();
    }
  },
};

const mark = "DEFINER=`";
/** As Berth names its logins, and the role that they have; whole, not cut off by the end of a chunk. */
const definer = /^([a-z][a-z0-9_]{0,79})`(@`%`|(?=[ *]))/;
const definerBytesMax = 90;
/** A database has had fewer passwords; anything may stand in its rows. */
const definersMax = 10_000;

/**
 * A dump's own bytes; each definer it names is there before the statement that needs it. Views and triggers act with the
 * rights of who made them: of logins that are gone here, locked ones take the place. What looks the same in a row makes one
 * that nobody uses, or none.
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
      await root.ask(`DELIMITER //
BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  ${create}; GRANT ALL PRIVILEGES ON ${everythingIn(databaseName)} TO ${account};
END //
DELIMITER ;`);
    }
    rest = text.subarray(-(mark.length + definerBytesMax));
    yield chunk;
  }
}

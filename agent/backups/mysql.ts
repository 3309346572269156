import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { Fingerprint } from "../../protocol/agent/backups.ts";
import type { Piped } from "../docker/engine.ts";
import type { Copier, Server } from "./copier.ts";
import { demandSuccess, feed, UnfitError } from "./copier.ts";
import { Session } from "./session.ts";
import { strayMark } from "./strays.ts";

const identifier = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

/** Root, which signs in over the container's own socket only. */
const asRoot = ["--user=root", "--protocol=socket", "--default-character-set=utf8mb4"];
const envOf = ({ spec }: Server): string[] => [strayMark, `MYSQL_PWD=${spec.adminPassword}`];

const open = async (server: Server): Promise<Session> =>
  new Session(
    await server.engine.pipe(server.id, {
      command: ["mariadb", ...asRoot, "--batch", "--raw", "--skip-column-names", "--unbuffered"],
      env: envOf(server),
    }),
    (word) => `SELECT '${word}';`,
  );

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

async function readTables(
  session: Session,
  databaseName: string,
  columns: Column[],
): Promise<Fingerprint["tables"]> {
  const tables = [];
  for (const [table, itsColumns] of Map.groupBy(columns, ([name]) => name)) {
    const row = itsColumns.map(([, column]) => `QUOTE(${identifier(column)})`).join(", ");
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

/** Once another transaction of root than this session's own is there, the dump has its view of the data; or it is over. */
async function untilDumpSees(session: Session, dump: Piped): Promise<void> {
  for (let tries = 0, seen = 0; tries < triesMax; tries++) {
    if (!(await dump.isRunning())) return;
    const [count] = await session.ask(
      "SELECT COUNT(*) FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id WHERE p.user = 'root' AND p.id <> CONNECTION_ID();",
    );
    // Twice, as it is listed a moment before it has its view.
    if (Number(count) > 0 && ++seen > 1) return;
    await delay(pauseMs);
  }
  throw new Error("mariadb-dump did not begin");
}

export const mysql: Copier = {
  hasty: ["--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"],

  /** Writes wait for the moment in which both sessions, the dump's and the one that counts, begin to see the same. */
  async copy(server, take) {
    const { engine, id, spec } = server;
    const session = await open(server);
    try {
      await session.ask(begin);
      const broken = await brokenViews(session, spec.databaseName);
      await session.ask("FLUSH TABLES WITH READ LOCK;");
      const { columns, objects } = await readShape(session, spec.databaseName);
      await session.ask("START TRANSACTION WITH CONSISTENT SNAPSHOT;");
      const dump = await engine.pipe(id, {
        command: [
          "mariadb-dump",
          ...asRoot,
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
        ],
        env: envOf(server),
      });
      const gzip = createGzip({ level: 1 });
      const compressed = pipeline(Readable.from(dump.output, { objectMode: false }), gzip);
      const dumped = Promise.all([take(gzip), compressed]).then(() => demandSuccess("mariadb-dump", dump));
      dumped.catch(() => undefined);
      try {
        await untilDumpSees(session, dump);
        await session.ask("UNLOCK TABLES;");
        const [tables] = await Promise.all([readTables(session, spec.databaseName, columns), dumped]);
        await session.end();
        const views = String(Number(objects["views"]) - broken.length);
        return { tables, objects: { ...objects, views }, counters: [] };
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
      const { columns, objects } = await readShape(session, server.spec.databaseName);
      const tables = await readTables(session, server.spec.databaseName, columns);
      await session.end();
      return { tables, objects, counters: [] };
    } finally {
      session.close();
    }
  },

  async fill(server, bytes, from) {
    const { engine, id, spec } = server;
    const client = await engine.pipe(id, {
      // Binary mode: the client takes no commands of its own out of the data.
      command: ["mariadb", ...asRoot, "--batch", "--binary-mode", spec.databaseName],
      env: envOf(server),
    });
    const gunzip = createGunzip();
    const unpacked = pipeline(Readable.from(bytes, { objectMode: false }), gunzip);
    unpacked.catch(() => undefined);
    try {
      await feed("mariadb", client, gunzip);
      await unpacked;
    } catch (error) {
      // What went wrong with the bytes says more than what unpacking made of it.
      await unpacked.catch((cause: NodeJS.ErrnoException) => {
        throw cause.code?.startsWith("Z_") ? new UnfitError(cause.message, { cause }) : cause;
      });
      throw error;
    }
    await keepDefiners(server, from.databaseName);
  },
};

/** Views and routines act with the rights of who made them: of logins that are gone here, locked ones take the place. */
async function keepDefiners(server: Server, fromName: string): Promise<void> {
  const schema = literal(server.spec.databaseName);
  const session = await open(server);
  try {
    const definers = parsed<[string]>(
      await session.ask(`SELECT DISTINCT JSON_ARRAY(definer) FROM (
        SELECT definer FROM information_schema.views WHERE table_schema = ${schema}
        UNION SELECT definer FROM information_schema.routines WHERE routine_schema = ${schema}
        UNION SELECT definer FROM information_schema.triggers WHERE trigger_schema = ${schema}
        UNION SELECT definer FROM information_schema.events WHERE event_schema = ${schema}) made;`),
    );
    const pattern = identifier(server.spec.databaseName.replace(/[_%]/g, "\\$&"));
    for (const [definer] of definers) {
      const user = /^(.+)@%$/.exec(definer)?.[1];
      if (user === undefined || !user.startsWith(`${fromName}_`)) continue;
      await session.ask(
        `CREATE USER IF NOT EXISTS ${literal(user)}@'%' ACCOUNT LOCK; GRANT ALL PRIVILEGES ON ${pattern}.* TO ${literal(user)}@'%';`,
      );
    }
    await session.end();
  } finally {
    session.close();
  }
}

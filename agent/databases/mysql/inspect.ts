import { createConnection, type Connection } from "mysql2";
import { maxShownStatement, type DatabaseTable } from "../../../protocol/api/insight.ts";
import {
  boundedSocket,
  connectionsTaken,
  megabytes,
  passwordChanged,
  rounded,
  sessionOnly,
  StatementError,
  type Answered,
  type Inspector,
  type Place,
} from "../inspect/place.ts";
import { binary, exactNumber, Rows } from "../inspect/rows.ts";

const port = 3306;
const ownQuestionsMs = 8000;
const maxTables = 300;
const binaryCharset = 63;

type Row = (string | null)[];
type Connected = {
  connection: Connection;
  taken: () => void;
  list: (sql: string, values?: string[]) => Promise<Row[]>;
};

/** Connects with the customer's login; multiple statements and local files are disabled. */
async function connected<T>(place: Place, work: (connected: Connected) => Promise<T>): Promise<T> {
  const { socket, taken } = boundedSocket(place.signal);
  socket.connect(port, place.address);
  const connection = createConnection({
    stream: socket,
    user: place.login.username,
    password: place.login.password,
    database: place.databaseName,
    multipleStatements: false,
    flags: ["-LOCAL_FILES"],
    disableEval: true,
    connectTimeout: 5000,
  });
  const list = (sql: string, values: string[] = []) =>
    new Promise<Row[]>((resolve, reject) => {
      connection.query(
        { sql, values, rowsAsArray: true, typeCast: (field) => field.string() },
        (error, rows) => (error ? reject(error) : resolve(rows as unknown as Row[])),
      );
    });
  // Errors reach the pending query; without a listener they would crash the process.
  connection.on("error", () => undefined);
  try {
    await signedIn(connection);
    return await work({ connection, taken, list });
  } finally {
    connection.destroy();
  }
}

/** ER_ACCESS_DENIED_ERROR, ER_MUST_CHANGE_PASSWORD_LOGIN */
const ofPassword = new Set([1045, 1862]);
/** ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED */
const ofConnections = new Set([1040, 1203, 1226]);

/** @throws SignInError if the server refuses the login. A statement may end with the same codes. */
const signedIn = (connection: Connection): Promise<void> =>
  new Promise((resolve, reject) => {
    connection.connect((error) => {
      if (!error) return resolve();
      const errno = error.errno ?? 0;
      if (ofPassword.has(errno)) return reject(passwordChanged());
      reject(ofConnections.has(errno) ? connectionsTaken() : error);
    });
  });

/** The server continues a statement after its client disconnects. */
const endConnection = (place: Place, id: number): Promise<void> =>
  connected({ ...place, signal: AbortSignal.timeout(3000) }, async ({ list }) => {
    await list(`KILL CONNECTION ${id}`);
  }).catch(() => undefined);

const quickly = (milliseconds: number) => `SET SESSION max_statement_time = ${milliseconds / 1000}`;

/** mysql2's description of a column, including fields that its types omit. */
type Field = { name: string; characterSet: number; columnType: number };

/** mysql2's type numbers, by the names in MariaDB's documentation. */
const typeNames: Record<number, string> = {
  0: "decimal",
  1: "tinyint",
  2: "smallint",
  3: "int",
  4: "float",
  5: "double",
  6: "null",
  7: "timestamp",
  8: "bigint",
  9: "mediumint",
  10: "date",
  11: "time",
  12: "datetime",
  13: "year",
  15: "varchar",
  16: "bit",
  245: "json",
  246: "decimal",
  247: "enum",
  248: "set",
  249: "tinyblob",
  250: "mediumblob",
  251: "longblob",
  252: "blob",
  253: "varchar",
  254: "char",
  255: "geometry",
};

const numbers = new Set(["tinyint", "smallint", "mediumint", "int", "bigint", "year", "float", "double"]);
const texts = /char|blob|bit|geometry/;

function typeOf({ columnType, characterSet }: Field): string {
  const name = typeNames[columnType] ?? "unknown";
  if (characterSet !== binaryCharset) return name.replace("blob", "text");
  return name.replace(/^(var)?char$/, "$1binary");
}

function valueOf(bytes: Buffer | null, { columnType, characterSet }: Field): unknown {
  if (bytes === null) return null;
  const name = typeNames[columnType] ?? "unknown";
  if (name === "geometry" || (characterSet === binaryCharset && texts.test(name))) return binary(bytes);
  const text = bytes.toString();
  return numbers.has(name) ? exactNumber(text) : text;
}

/** Spaces and comments; not executable comments. */
const gap = String.raw`(?:\s|#[^\n]*(?:\n|$)|--[ \t][^\n]*(?:\n|$)|\/\*(?!!|M!)(?:[^*]|\*(?!\/))*\*\/)`;
const beginning = (words: string) => new RegExp(`^${gap}*(?:${words})`, "i");

/**
 * The beginnings of read-only statements. MariaDB accepts a whole program as one statement (`BEGIN NOT ATOMIC COMMIT;
 * …`, `CALL`, `EXECUTE IMMEDIATE`), which could end the read-only transaction; these cannot.
 */
const reading = beginning(String.raw`\(|(?:SELECT|WITH|VALUES|TABLE|SHOW|DESCRIBE|DESC|EXPLAIN|HELP)\b`);

/** The beginnings of statements that a transaction can roll back. */
const changing = beginning(String.raw`(?:WITH|INSERT|UPDATE|DELETE|REPLACE)\b`);

/** The beginnings of statements that end with their session. */
const overWithSession = beginning(
  String.raw`(BEGIN\b(?!${gap}+NOT\b)|START${gap}+TRANSACTION\b|(?:COMMIT|ROLLBACK|SAVEPOINT|RELEASE|USE|LOCK|UNLOCK|PREPARE)\b|SET\b(?!${gap}+(?:STATEMENT|GLOBAL|PASSWORD|DEFAULT)\b))`,
);

/** @throws StatementError if a table of the database takes no part in transactions */
async function demandRollback({ list }: Connected): Promise<void> {
  const [[table] = []] = await list(
    "SELECT CONCAT(t.TABLE_NAME, ' (', t.ENGINE, ')') FROM information_schema.TABLES t JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = DATABASE() AND e.TRANSACTIONS = 'NO' LIMIT 1",
  );
  if (table != null)
    throw new StatementError(
      `A dry run is not possible in this database: changes to the table ${table} cannot be rolled back.`,
    );
}

function refusalOf(error: unknown, timeoutMs: number): unknown {
  const { errno, sqlMessage } = error as { errno?: number; sqlMessage?: string };
  // ER_STATEMENT_TIMEOUT
  if (errno === 1969)
    return new StatementError(`The statement took longer than ${timeoutMs / 1000} s and was ended.`);
  return sqlMessage === undefined ? error : new StatementError(`MariaDB refused it: ${sqlMessage}.`);
}

/** The statement's first result, row by row. */
function run(
  { connection, taken }: Connected,
  sql: string,
  rows: Rows,
  write: boolean,
): Promise<Omit<Answered, "rows" | "truncated">> {
  return new Promise((resolve, reject) => {
    // Raw bytes as the server sent them.
    const running = connection.query({ sql, rowsAsArray: true, typeCast: false });
    let fields: Field[] = [];
    let affectedRows: number | null = null;
    let results = 0;
    const done = () =>
      resolve({
        columns: fields.map((field) => ({ name: field.name, type: typeOf(field) })),
        affectedRows,
      });
    running.on("fields", (found: unknown) => {
      if (!Array.isArray(found)) return;
      results++;
      if (results === 1) fields = found as Field[];
    });
    running.on("result", (row: unknown) => {
      taken();
      if (!Array.isArray(row)) {
        affectedRows = (row as { affectedRows?: number }).affectedRows ?? null;
        return;
      }
      try {
        // A writing statement must complete, however little of it is shown.
        const values = () =>
          fields.map((field, index) => valueOf((row as (Buffer | null)[])[index] ?? null, field));
        if (results === 1 && !rows.truncated && !rows.add(values()) && !write) done();
      } catch (error) {
        reject(error);
      }
    });
    running.on("error", reject);
    // The end of the connection is not reported to the query.
    connection.once("error", reject);
    running.on("end", done);
  });
}

const foldedBy = <T>(rows: Row[], valueOf: (row: Row) => T): Map<string, T[]> => {
  const folded = new Map<string, T[]>();
  for (const row of rows) folded.set(row[0] ?? "", [...(folded.get(row[0] ?? "") ?? []), valueOf(row)]);
  return folded;
};

const schemaQueries = {
  tables: `SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'SEQUENCE' ORDER BY TABLE_NAME LIMIT ${maxTables + 1}`,
  columns: `SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, LEFT(COLUMN_DEFAULT, 500) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME, ORDINAL_POSITION`,
  indexes: `SELECT TABLE_NAME, INDEX_NAME, MIN(NON_UNIQUE), JSON_ARRAYAGG(COLUMN_NAME ORDER BY SEQ_IN_INDEX) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? GROUP BY TABLE_NAME, INDEX_NAME ORDER BY TABLE_NAME, INDEX_NAME`,
  keys: `SELECT TABLE_NAME, REFERENCED_TABLE_NAME, JSON_ARRAYAGG(COLUMN_NAME ORDER BY ORDINAL_POSITION), JSON_ARRAYAGG(REFERENCED_COLUMN_NAME ORDER BY ORDINAL_POSITION) FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = ? AND REFERENCED_TABLE_NAME IS NOT NULL GROUP BY TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_NAME ORDER BY TABLE_NAME, CONSTRAINT_NAME`,
};
const words = (text: string | null | undefined): string[] => JSON.parse(text ?? "[]") as string[];

export const mysql: Inspector = {
  insight: (place) =>
    connected(place, async ({ list }) => {
      await list(quickly(ownQuestionsMs));
      const status = new Map(
        (
          await list(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Uptime', 'Innodb_buffer_pool_read_requests', 'Innodb_buffer_pool_reads')",
          )
        ).map(([name, value]) => [name, Number(value)]),
      );
      const [[max, size] = []] = await list(
        "SELECT COALESCE(NULLIF(@@max_user_connections, 0), @@max_connections), (SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?)",
        [place.databaseName],
      );
      const active = await list(
        `SELECT ID, LEFT(INFO, ${maxShownStatement}), TIME_MS, STATE FROM information_schema.PROCESSLIST WHERE COMMAND NOT IN ('Sleep', 'Daemon') AND INFO IS NOT NULL AND ID <> CONNECTION_ID() ORDER BY TIME_MS DESC LIMIT 50`,
      );
      // In picoseconds. A server started before these statistics were enabled has none.
      const slow = await list(
        `SELECT LEFT(DIGEST_TEXT, ${maxShownStatement}), COUNT_STAR, SUM_TIMER_WAIT / 1e9, AVG_TIMER_WAIT / 1e9, MAX_TIMER_WAIT / 1e9 FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = ? AND DIGEST_TEXT IS NOT NULL ORDER BY SUM_TIMER_WAIT DESC LIMIT 20`,
        [place.databaseName],
      ).catch(() => []);
      const asked = status.get("Innodb_buffer_pool_read_requests") ?? 0;
      const missed = status.get("Innodb_buffer_pool_reads") ?? 0;
      return {
        sizeMb: megabytes(Number(size ?? 0)),
        connections: { used: status.get("Threads_connected") ?? 0, max: Number(max) },
        cacheHitRatio: asked === 0 ? null : Math.max(0, 1 - missed / asked),
        uptimeSeconds: status.get("Uptime") ?? 0,
        activeQueries: active.map(([id, statement, ms, state]) => ({
          id: String(id),
          statement: statement ?? "",
          durationMs: Math.max(0, rounded(Number(ms))),
          state: state ?? "",
          waitsFor: state != null && /^waiting/i.test(state) ? state : null,
          blockedBy: [],
        })),
        slowQueries: slow.map(([statement, calls, total, mean, worst]) => ({
          statement: statement ?? "",
          calls: Number(calls),
          totalMs: rounded(Number(total)),
          meanMs: rounded(Number(mean)),
          maxMs: rounded(Number(worst)),
        })),
      };
    }),

  schema: (place) =>
    connected(place, async ({ list }) => {
      await list(quickly(ownQuestionsMs));
      const of = (sql: string) => list(sql, [place.databaseName]);
      const rows = await of(schemaQueries.tables);
      const columns = foldedBy(await of(schemaQueries.columns), ([, name, type, nullable, preset]) => ({
        name: name ?? "",
        type: type ?? "",
        nullable: nullable === "YES",
        default: preset ?? null,
      }));
      const indexes = foldedBy(await of(schemaQueries.indexes), ([, name, isPlain, of]) => ({
        name: name ?? "",
        unique: isPlain === "0",
        columns: words(of),
      }));
      const keys = foldedBy(await of(schemaQueries.keys), ([, table, own, others]) => ({
        columns: words(own),
        table: table ?? "",
        references: words(others),
      }));
      const tables = rows.map(([name = "", type, estimate, bytes]): DatabaseTable => {
        const isTable = type !== "VIEW";
        const all = indexes.get(name ?? "") ?? [];
        return {
          schema: place.databaseName,
          name: name ?? "",
          kind: isTable ? "table" : "view",
          rowsEstimate: isTable && estimate != null ? Number(estimate) : null,
          sizeMb: isTable && bytes != null ? megabytes(Number(bytes)) : null,
          columns: columns.get(name ?? "") ?? [],
          primaryKey: all.find((index) => index.name === "PRIMARY")?.columns ?? [],
          foreignKeys: keys.get(name ?? "") ?? [],
          indexes: all,
        };
      });
      return { tables: tables.slice(0, maxTables), keyspaces: [], truncated: tables.length > maxTables };
    }),

  query: async (place, { statement, write, dryRun, limit, timeoutMs }) => {
    const [, ending] = overWithSession.exec(statement) ?? [];
    if (ending !== undefined) throw sessionOnly(ending.toUpperCase());
    if (dryRun && !changing.test(statement))
      throw new StatementError(
        "A dry run takes INSERT, UPDATE, DELETE or REPLACE: MariaDB commits other statements by itself.",
      );
    if (!write && !dryRun && !reading.test(statement))
      throw new StatementError(
        "A statement that only reads begins with SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE or EXPLAIN: anything else requires `write`.",
      );
    const rows = new Rows(limit, write || dryRun);
    let id = 0;
    try {
      return await connected(place, async (one) => {
        const [[own] = []] = await one.list("SELECT CONNECTION_ID()");
        id = Number(own);
        await one.list(`${quickly(timeoutMs)}, lock_wait_timeout = 30`);
        if (dryRun) await demandRollback(one);
        if (dryRun) await one.list("START TRANSACTION");
        else if (!write) await one.list("START TRANSACTION READ ONLY");
        const { columns, affectedRows } = await run(one, statement, rows, write || dryRun);
        if (dryRun) await one.list("ROLLBACK");
        if (write || dryRun || !rows.truncated) id = 0;
        return rows.answer(columns, (write || dryRun) && columns.length === 0 ? affectedRows : null);
      });
    } catch (error) {
      throw refusalOf(error, timeoutMs);
    } finally {
      if (id !== 0) await endConnection(place, id);
    }
  },

  endSession: (place, session) =>
    connected(place, async ({ list }) => {
      try {
        await list(`KILL CONNECTION ${Number(session)}`);
        return true;
      } catch (error) {
        // ER_NO_SUCH_THREAD
        if ((error as { errno?: number }).errno === 1094) return false;
        throw refusalOf(error, ownQuestionsMs);
      }
    }),
};

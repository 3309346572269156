import pg from "pg";
import { maxShownStatement, type DatabaseTable } from "../../../protocol/api/insight.ts";
import {
  boundedSocket,
  connectionsTaken,
  megabytes,
  passwordChanged,
  rounded,
  StatementError,
  type Inspector,
  type Login,
  type Place,
} from "../inspect/place.ts";
import { binary, exactNumber, Rows } from "../inspect/rows.ts";
import { queryReader } from "./server.ts";
import { SingleStatement, type Ended } from "./single-statement.ts";

const port = 5432;
const ownQuestionsMs = 8000;
const maxTables = 300;

type Connected = { client: pg.Client; taken: () => void };

/** The server cancels what this connection started when the connection closes, whatever it is doing. */
async function connected<T>(
  { address, databaseName, login, signal }: Place,
  timeoutMs: number,
  work: (connected: Connected) => Promise<T>,
  settings: readonly string[] = [],
): Promise<T> {
  const { socket, taken } = boundedSocket(signal);
  const client = new pg.Client({
    host: address,
    port,
    user: login.username,
    password: login.password,
    database: databaseName,
    ssl: false,
    client_encoding: "UTF8",
    application_name: "berth",
    stream: () => socket,
    options: [
      `statement_timeout=${timeoutMs}`,
      `lock_timeout=${timeoutMs}`,
      "idle_in_transaction_session_timeout=5000",
      "client_connection_check_interval=500",
      "DateStyle=ISO",
      "bytea_output=hex",
      // A library that is not there refuses every connection.
      "local_preload_libraries=",
      ...settings,
    ]
      .map((setting) => `-c ${setting}`)
      .join(" "),
  });
  // Errors reach the pending query; without a listener they would crash the process.
  client.on("error", () => undefined);
  try {
    await client.connect().catch((error: unknown) => {
      throw signInRefusal(error, login);
    });
    return await work({ client, taken });
  } finally {
    socket.destroy();
  }
}

function signInRefusal(error: unknown, { username }: Login): unknown {
  const { code } = error as { code?: string };
  // too_many_connections
  if (code === "53300") return connectionsTaken();
  // invalid_password. That of Berth's own login is set anew by the next question.
  return code === "28P01" && username !== queryReader ? passwordChanged() : error;
}

/** Built-in type OIDs, which are the same in every PostgreSQL. */
const boolean = 16;
const bytes = 17;
const numbers = new Set([20, 21, 23, 26, 700, 701]);

function valueOf(text: string, type: number): unknown {
  if (type === boolean) return text === "t";
  if (type === bytes) return binary(Buffer.from(text.slice(2), "hex"));
  return numbers.has(type) ? exactNumber(text) : text;
}

async function columnsOf(client: pg.Client, { fields }: Ended) {
  if (fields.length === 0) return [];
  const { rows } = await client.query<[string, string]>({
    text: "SELECT pg_catalog.format_type(o, m) FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[])) WITH ORDINALITY AS t(o, m, n) ORDER BY n",
    values: [
      fields.map(({ dataTypeID }) => dataTypeID),
      fields.map(({ dataTypeModifier }) => dataTypeModifier),
    ],
    rowMode: "array",
  });
  return fields.map(({ name }, index) => ({ name, type: rows[index]?.[0] ?? "unknown" }));
}

function refusalOf(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof pg.DatabaseError)) return error;
  // query_canceled: by the server itself, at the given limit.
  if (error.code === "57014")
    return new StatementError(`The statement took longer than ${timeoutMs / 1000} s and was ended.`);
  const more = [error.detail, error.hint].filter(Boolean).map((text) => ` ${text}`);
  const place = error.position === undefined ? "" : ` (at character ${error.position})`;
  return new StatementError(`PostgreSQL refused it: ${error.message}${place}.${more.join("")}`);
}

const insights = {
  summary: `SELECT pg_database_size(current_database()), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    (SELECT coalesce(nullif(rolconnlimit, -1), current_setting('max_connections')::int) FROM pg_roles WHERE rolname = session_user), (SELECT blks_hit::float8 / nullif(blks_hit + blks_read, 0) FROM pg_stat_database WHERE datname = current_database()),
    extract(epoch FROM now() - pg_postmaster_start_time())`,
  active: `SELECT pid, left(query, ${maxShownStatement}), extract(epoch FROM clock_timestamp() - query_start) * 1000, concat_ws(', ', state, wait_event_type),
    CASE WHEN state = 'active' THEN concat_ws(': ', wait_event_type, wait_event) END, array_to_json(pg_blocking_pids(pid))
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND query_start IS NOT NULL ORDER BY query_start LIMIT 50`,
  slow: `SELECT left(query, ${maxShownStatement}), calls, total_exec_time, mean_exec_time, max_exec_time FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = current_user::regrole
    AND query NOT LIKE '%pg_stat_statements%' ORDER BY total_exec_time DESC LIMIT 20`,
};

/** Only the reader may see the text of others' statements. */
const activeOf = async (place: Place): Promise<unknown[][]> =>
  askedBy(await place.reader(), place, (client) => list(client, insights.active));

const tables = `
SELECT json_build_object(
  'schema', n.nspname, 'name', c.relname,
  'kind', CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
  'rowsEstimate', CASE WHEN c.relkind IN ('r', 'm') AND c.reltuples >= 0 THEN c.reltuples::int8 END,
  'bytes', CASE WHEN c.relkind IN ('r', 'm') THEN pg_total_relation_size(c.oid) END,
  'columns', (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'nullable', NOT a.attnotnull,
      'default', left(pg_get_expr(d.adbin, d.adrelid), 500)) ORDER BY a.attnum), '[]')
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'primaryKey', (SELECT coalesce(json_agg(a.attname ORDER BY array_position(k.conkey, a.attnum)), '[]')
    FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.conkey) WHERE k.conrelid = c.oid AND k.contype = 'p'),
  'foreignKeys', (SELECT coalesce(json_agg(json_build_object(
      'columns', (SELECT json_agg(a.attname ORDER BY array_position(k.conkey, a.attnum)) FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
      'table', k.confrelid::regclass::text,
      'references', (SELECT json_agg(a.attname ORDER BY array_position(k.confkey, a.attnum)) FROM pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)))
      ORDER BY k.conname), '[]')
    FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'),
  'indexes', (SELECT coalesce(json_agg(json_build_object('name', i.relname, 'unique', x.indisunique,
      'columns', (SELECT json_agg(pg_get_indexdef(x.indexrelid, p, true) ORDER BY p) FROM generate_series(1, x.indnkeyatts) p)) ORDER BY i.relname), '[]')
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid))::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = c.oid AND e.classid = 'pg_class'::regclass AND e.deptype = 'e')
ORDER BY n.nspname, c.relname LIMIT ${maxTables + 1}`;

const list = async (client: pg.Client, text: string) =>
  (await client.query<unknown[]>({ text, rowMode: "array" })).rows;

/** A question of ours that only reads. */
const asked = <T>(place: Place, settings: readonly string[], work: (client: pg.Client) => Promise<T>) =>
  connected(place, ownQuestionsMs, ({ client }) => work(client), [
    "default_transaction_read_only=on",
    ...settings,
  ]);

/** Asks with this login: no function of the owner's that shadows one of the server's runs with its rights. */
const askedBy = <T>(login: Login, place: Place, work: (client: pg.Client) => Promise<T>) =>
  asked({ ...place, login }, ["search_path=pg_catalog"], work);

export const postgresql: Inspector = {
  insight: (place) =>
    asked(place, [], async (client) => {
      const slow = await list(client, insights.slow).catch(() => []);
      // The login itself may see its own connections; as the owner role it may not.
      await client.query("SET ROLE NONE");
      const [[size, used, max, hits, uptime] = []] = await list(client, insights.summary);
      const active = [...(await list(client, insights.active)), ...(await activeOf(place))];
      return {
        sizeMb: megabytes(Number(size)),
        connections: { used: Number(used), max: Number(max) },
        cacheHitRatio: hits === null ? null : Number(hits),
        uptimeSeconds: Math.max(0, Math.round(Number(uptime))),
        activeQueries: active.map(([pid, statement, ms, state, waitsFor, blockers]) => ({
          id: String(pid),
          statement: String(statement),
          durationMs: Math.max(0, rounded(Number(ms))),
          state: String(state),
          waitsFor: typeof waitsFor === "string" && waitsFor !== "" ? waitsFor : null,
          blockedBy: ((typeof blockers === "string" ? JSON.parse(blockers) : blockers) as number[])
            .slice(0, 50)
            .map(String),
        })),
        slowQueries: slow.map(([statement, calls, total, mean, worst]) => ({
          statement: String(statement),
          calls: Number(calls),
          totalMs: rounded(Number(total)),
          meanMs: rounded(Number(mean)),
          maxMs: rounded(Number(worst)),
        })),
      };
    }),

  schema: (place) =>
    // As the login itself: what the owner role asks is counted among the statements of the database's owner.
    asked(place, ["role=none", "search_path=pg_catalog"], async (client) => {
      const rows = await list(client, tables);
      const found = rows.map(([text]) => {
        const { bytes: size, ...table } = JSON.parse(String(text)) as DatabaseTable & {
          bytes: number | null;
        };
        return { ...table, sizeMb: size === null ? null : megabytes(size) };
      });
      return { tables: found.slice(0, maxTables), keyspaces: [], truncated: found.length > maxTables };
    }),

  query: async (place, { statement, write, dryRun, limit, timeoutMs }) => {
    const login = write || dryRun ? place.login : await place.reader();
    return connected({ ...place, login }, timeoutMs, async ({ client, taken }) => {
      const rows = new Rows(limit, write || dryRun);
      try {
        // A transaction with a snapshot can no longer be changed from read-only to read-write.
        // Deferred constraints are checked by a commit, which a dry run never reaches.
        if (dryRun) await client.query("BEGIN; SET CONSTRAINTS ALL IMMEDIATE");
        else if (!write) await client.query("BEGIN READ ONLY; SELECT 1");
        const single = new SingleStatement(statement, rows, write || dryRun, valueOf, taken);
        client.query(single);
        const ended = await single.ended;
        const columns = await columnsOf(client, ended);
        if (!write) await client.query("ROLLBACK");
        return rows.answer(columns, ended.affectedRows);
      } catch (error) {
        throw refusalOf(error, timeoutMs);
      }
    });
  },

  endSession: async (place, session) => {
    const end = (login: Login) =>
      askedBy(login, place, async (client) => {
        // Only the login itself may end its sessions; the role that it acts as may not.
        await client.query("SET ROLE NONE");
        const { rows } = await client.query<[boolean]>({
          text: "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int AND datname = current_database() AND pid <> pg_backend_pid()",
          values: [session],
          rowMode: "array",
        });
        return rows.length > 0;
      });
    try {
      return await end(place.login);
    } catch (error) {
      if (!isNotAllowed(error)) throw refusalOf(error, ownQuestionsMs);
    }
    // A statement of ours that only reads has a login of its own.
    return end(await place.reader()).catch((error: unknown) => {
      throw refusalOf(error, ownQuestionsMs);
    });
  },
};

/** SQLSTATE insufficient_privilege. */
const isNotAllowed = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === "42501";

import type { Database } from "../../../protocol/api/databases.ts";
import { dryRun } from "../../api/dry-run.ts";
import { call } from "../call.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { databaseEvents } from "../../domain/database-events.ts";
import {
  asks,
  asksAboutDatabase,
  changeDatabase,
  databaseId,
  databaseNamed,
  lastLines,
  pageFor,
  payAt,
  refuseInVain,
  siteId,
} from "../resources.ts";
import { Revealed, type Tools } from "../tool.ts";
import { window } from "./running.ts";

type Names =
  | "list_databases"
  | "get_database"
  | "create_database"
  | "start_database"
  | "stop_database"
  | "restart_database"
  | "delete_database"
  | "get_connection_string"
  | "link_database"
  | "rotate_database_password"
  | "describe_schema"
  | "run_read_query"
  | "run_write_query"
  | "list_active_queries"
  | "kill_query"
  | "list_slow_queries"
  | "get_database_metrics"
  | "get_database_logs";

const act = async (ctx: Ctx, db: string, action: "start" | "stop" | "restart") =>
  changeDatabase<"action">(ctx, await databaseId(ctx, db), { action });

/** Runs the statement that the person confirmed: requests the service's own confirmation and gives it at once. */
async function write(ctx: Ctx, id: string, statement: string) {
  const asked = { id, statement, write: true };
  try {
    return await call(ctx, "queryDatabase", asked);
  } catch (error) {
    const confirm = error instanceof AppError ? error.extra["confirm"] : undefined;
    if (typeof confirm !== "string") throw error;
    return call(ctx, "queryDatabase", { ...asked, confirm });
  }
}

/** One sentence about a statement's effect, from a dry run. */
async function rowsChangedBy(ctx: Ctx, database: Database, statement: string): Promise<string> {
  const found = await dryRun(ctx, database, statement);
  if ("untried" in found) return `There was no dry run: ${found.untried}`;
  const { affectedRows } = found;
  const by = database.type === "postgresql" ? "a dry run, which advances sequences" : "a dry run";
  return affectedRows === null
    ? "A dry run succeeded; it changes no counted rows."
    : `By ${by}, it changes ${affectedRows} ${affectedRows === 1 ? "row" : "rows"}.`;
}

export const databaseTools: Tools<Names> = {
  list_databases: {
    async run(ctx, { status, ...asked }) {
      const read = (cursor?: string) => call(ctx, "listDatabases", { status, limit: 100, cursor });
      const { data, nextCursor } = await pageFor(read, asked);
      const databases = data.map((one) => ({
        id: one.id,
        name: one.name,
        type: one.type,
        status: one.status,
      }));
      return { databases, nextCursor };
    },
  },
  get_database: { run: (ctx, { db }) => databaseNamed(ctx, db) },
  create_database: {
    async run(ctx, asked) {
      const created = await call(ctx, "createDatabase", asked);
      return { ...created, payAt: payAt(ctx, created.invoiceToken) };
    },
  },
  start_database: { run: (ctx, { db }) => act(ctx, db, "start") },
  stop_database: {
    run: (ctx, { db }) => act(ctx, db, "stop"),
    consequence: (ctx, { db }) =>
      asksAboutDatabase(ctx, db, ({ name, status }) => {
        refuseInVain("stop", "database", status, databaseEvents.stopRequested);
        return `Stop the database ${name}: linked sites cannot reach it.`;
      }),
  },
  restart_database: {
    run: (ctx, { db }) => act(ctx, db, "restart"),
    consequence: (ctx, { db }) =>
      asksAboutDatabase(ctx, db, ({ name, status }) => {
        refuseInVain("restart", "database", status, databaseEvents.restartRequested);
        return `Restart the database ${name}: open connections are closed.`;
      }),
  },
  delete_database: {
    run: async (ctx, { db, skipFinalBackup = false }) =>
      call(ctx, "deleteDatabase", {
        id: await databaseId(ctx, db),
        skipFinalBackup: skipFinalBackup ? "1" : "0",
      }),
    consequence: (ctx, { db, skipFinalBackup = false }) =>
      asksAboutDatabase(
        ctx,
        db,
        ({ name, paidUntil }) =>
          `Delete the database ${name} with all its data; ${skipFinalBackup || paidUntil === null ? "no last backup is taken" : "a last backup is taken and kept for 30 days"}.`,
      ),
  },
  get_connection_string: {
    async run(ctx, { db }) {
      const shown = await call(ctx, "getDatabaseCredentials", { id: await databaseId(ctx, db) });
      const outside = shown.publicAccess ? `\nPublic address: ${shown.publicAccess.connectionString}` : "";
      return new Revealed(
        { shown: "The address is on the person's screen." },
        `Address of ${db}, with its password: ${shown.connectionString}${outside}`,
      );
    },
    consequence: (ctx, { db }) =>
      asksAboutDatabase(
        ctx,
        db,
        ({ name }) => `Show the address of the database ${name} with its password here.`,
      ),
  },
  link_database: {
    async run(ctx, { db, site, variable, linked = true }) {
      const pair = { id: await databaseId(ctx, db), siteId: await siteId(ctx, site) };
      return linked ? call(ctx, "linkDatabase", { ...pair, variable }) : call(ctx, "unlinkDatabase", pair);
    },
    async consequence(ctx, { db, site, linked = true }) {
      if (linked) return null;
      const id = await siteId(ctx, site);
      return asksAboutDatabase(
        ctx,
        db,
        ({ name }) => `Unlink the database ${name} from the site ${site}: the site loses its address.`,
        id,
      );
    },
  },
  rotate_database_password: {
    run: async (ctx, { db }) => call(ctx, "rotateDatabase", { id: await databaseId(ctx, db) }),
    consequence: (ctx, { db }) =>
      asksAboutDatabase(
        ctx,
        db,
        ({ name }) =>
          `Give the database ${name} a new password: linked sites are restarted with it, other clients are disconnected.`,
      ),
  },
  describe_schema: {
    async run(ctx, { db, filter }) {
      const { tables, keyspaces, truncated } = await call(ctx, "getDatabaseSchema", {
        id: await databaseId(ctx, db),
      });
      return {
        tables: tables
          .filter(({ name }) => filter === undefined || name.includes(filter))
          .map(({ schema, name, rowsEstimate, columns, primaryKey, indexes }) => ({
            name: `${schema}.${name}`,
            rowsEstimate,
            columns: columns.map((one) => `${one.name} ${one.type}${one.nullable ? "" : " not null"}`),
            primaryKey,
            indexes: indexes.map((one) => `${one.name} (${one.columns.join(", ")})`),
          })),
        keyspaces,
        truncated,
      };
    },
  },
  run_read_query: {
    run: async (ctx, { db, query, limit = 50 }) =>
      call(ctx, "queryDatabase", {
        id: await databaseId(ctx, db),
        statement: query,
        limit,
      }),
  },
  run_write_query: {
    run: async (ctx, { db, query }) => write(ctx, await databaseId(ctx, db), query),
    consequence: (ctx, { db, query }) =>
      asksAboutDatabase(
        ctx,
        db,
        ({ name }) => `Run this statement, which may change data, in the database ${name}:\n${query}\n`,
      ),
    tried: async (ctx, { db, query }) => rowsChangedBy(ctx, await databaseNamed(ctx, db), query),
  },
  list_active_queries: {
    run: async (ctx, { db }) =>
      (await call(ctx, "getDatabaseInsight", { id: await databaseId(ctx, db) })).activeQueries,
  },
  kill_query: {
    run: async (ctx, { db, query }) =>
      call(ctx, "endDatabaseSession", { id: await databaseId(ctx, db), sessionId: query }),
    async consequence(ctx, { db, query }) {
      const { id, name } = await databaseNamed(ctx, db);
      const { activeQueries } = await call(ctx, "getDatabaseInsight", { id });
      const found = activeQueries.find((one) => one.id === query);
      // Not the statement, which anybody may have written: this stands in the conversation as the assistant's own words.
      const kind =
        /^\s*(select|insert|update|delete|create|alter|drop|begin|commit|call|copy|vacuum)\b/i.exec(
          found?.statement ?? "",
        )?.[1];
      const doing = found
        ? `whose ${kind?.toUpperCase() ?? "statement"} has run for ${Math.round(found.durationMs / 1000)} s`
        : "which runs nothing at the moment";
      const waiting = activeQueries.filter(({ blockedBy = [] }) => blockedBy.includes(query)).length;
      const says = `End the session ${query} of the database ${name}`;
      const text = `${doing}: its transaction is rolled back. Sessions that wait for its locks: ${waiting}.`;
      return asks(`${says},`, id, { text, facts: found?.statement });
    },
  },
  list_slow_queries: {
    run: async (ctx, { db, limit = 10 }) =>
      (await call(ctx, "getDatabaseInsight", { id: await databaseId(ctx, db) })).slowQueries.slice(0, limit),
  },
  get_database_metrics: {
    async run(ctx, { db, minutes = 60 }) {
      const id = await databaseId(ctx, db);
      const [{ data }, { sizeMb, connections, cacheHitRatio }] = [
        await call(ctx, "getDatabaseMetrics", { id, minutes }),
        await call(ctx, "getDatabaseInsight", { id }),
      ];
      return { sizeMb, connections, cacheHitRatio, minutes: window(data) };
    },
  },
  get_database_logs: {
    async run(ctx, { db, tail, since, search }) {
      const id = await databaseId(ctx, db);
      const log = await call(ctx, "getDatabaseLogs", {
        id,
        tail: search ? 1000 : (tail ?? 100),
        since,
      });
      if (log instanceof ReadableStream) return [];
      return lastLines(log.data, { tail, search }).map(({ at, text }) => ({ at, text }));
    },
  },
};

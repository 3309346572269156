import type { Miniflare } from "miniflare";
import type { Database } from "./migrate.ts";

type Query = { sql: string; params: unknown[] };
type Statement = ReturnType<Database["prepare"]> & Query;

/** What differs from wrangler.toml: the database is an object of worker/embedded, and so is what the guards of keys keep. */
export function embeddedBindings(options: object) {
  // worker/embedded/guards.ts takes its place; nothing may reach another one.
  const { KEY_GUARD: _, ...durableObjects } =
    (options as { durableObjects?: Record<string, object> }).durableObjects ?? {};
  return {
    d1Databases: {},
    durableObjects: {
      ...durableObjects,
      CLOCK: { className: "Clock", useSQLite: true },
      EMBEDDED_DATABASE: { className: "EmbeddedDatabase", useSQLite: true },
      KEY_USES: { className: "KeyUses", useSQLite: true },
    },
  };
}

/** The same database for Node. */
export function embeddedDatabase(miniflare: Miniflare, worker?: string): Database {
  const query = async (queries: Query[]) => {
    const objects = await miniflare.getDurableObjectNamespace("EMBEDDED_DATABASE", worker);
    const answer = await objects
      .get(objects.idFromName("berth"))
      .fetch("http://database/", { method: "POST", body: JSON.stringify(queries) });
    if (!answer.ok) throw new Error(`The database refused a statement: ${await answer.text()}`);
    return (await answer.json()) as { columns: string[]; rows: unknown[][] }[];
  };
  const statement = (sql: string, params: unknown[]): Statement => ({
    sql,
    params,
    bind: (...values) => statement(sql, values),
    run: () => query([{ sql, params }]),
    async all() {
      const [answer] = await query([{ sql, params }]);
      const rows = answer?.rows.map((row) =>
        Object.fromEntries(row.map((value, at) => [answer.columns[at], value])),
      );
      return { results: rows as { name: string }[] };
    },
  });
  return {
    prepare: (sql) => statement(sql, []),
    batch: (statements) => query(statements as Statement[]),
  };
}

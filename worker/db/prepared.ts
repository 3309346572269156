import { fillPlaceholders, type SQL } from "drizzle-orm";
import type { DrizzleD1Database } from "drizzle-orm/d1";

type Db = DrizzleD1Database;
/** What drizzle-orm builds a query with. */
export type Preparable = { prepare(): { getQuery(): { sql: string; params: unknown[] } } };
type Prepared = ReturnType<Preparable["prepare"]>;
const preparedOf = new WeakMap<D1Database, WeakMap<object, Prepared>>();

/** What `db.batch` takes: a prepared query whose parameters are filled in. */
export function bound(
  client: D1Database,
  db: Db,
  query: ((db: Db) => Preparable) | SQL,
  values: Record<string, unknown>,
) {
  let known = preparedOf.get(client);
  if (!known) preparedOf.set(client, (known = new WeakMap()));
  let prepared = known.get(query);
  if (!prepared)
    known.set(
      query,
      (prepared = typeof query === "function" ? query(db).prepare() : rawStatement(client, db, query)),
    );
  const { sql, params } = prepared.getQuery();
  const filled = { sql, params: fillPlaceholders(params, values) };
  const item = Object.create(prepared, { getQuery: { value: () => filled } }) as object;
  return Object.assign(item, { _prepare: () => item });
}

/** drizzle-orm's own `db.run` binds no parameters in a batch: it looks for them at a statement that it never made. */
export function rawStatement(client: D1Database, db: Db, query: SQL) {
  const raw = db.run(query);
  const written = raw.getQuery();
  return Object.assign(raw, { stmt: client.prepare(written.sql), getQuery: () => written });
}

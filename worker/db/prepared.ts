import { Column, fillPlaceholders, is, SQL } from "drizzle-orm";
import type { DrizzleD1Database } from "drizzle-orm/d1";
import { blankOf } from "../domain/blank.ts";

type Db = DrizzleD1Database;
/** What drizzle-orm builds a query with. */
export type Preparable = { prepare(): { getQuery(): { sql: string; params: unknown[] } } };
type Prepared = ReturnType<Preparable["prepare"]> & { fields?: Field[]; executeMethod?: string };
type Field = { path: string[]; field: unknown };
type Decoder = { mapFromDriverValue(value: unknown): unknown };
type Written = { prepared: Prepared; mapRow: ((row: unknown[]) => object) | undefined };
const writtenOf = new WeakMap<D1Database, WeakMap<object, Written>>();

/**
 * What drizzle-orm does with each row, decided once for all of them: it asks for the class of every column of every row,
 * which takes longer than the query. undefined for what is not a flat list of columns.
 */
function rowMapper({ fields, executeMethod }: Prepared): Written["mapRow"] {
  if (!fields || executeMethod !== "all") return undefined;
  const columns: { name: string; decoder: Decoder | undefined }[] = [];
  for (const { path, field } of fields) {
    const decoder = is(field, Column)
      ? field
      : is(field, SQL)
        ? (field as unknown as { decoder: Column }).decoder
        : is(field, SQL.Aliased)
          ? (field.sql as unknown as { decoder: Column }).decoder
          : undefined;
    const [name, ...others] = path;
    if (!decoder || name === undefined || others.length > 0) return undefined;
    const isAsStored = decoder.mapFromDriverValue === Column.prototype.mapFromDriverValue;
    columns.push({ name, decoder: isAsStored ? undefined : decoder });
  }
  const blank: Record<string, unknown> = blankOf(columns.map(({ name }) => name));
  return (row) => {
    const object = { ...blank };
    columns.forEach(({ name, decoder }, at) => {
      const value = row[at];
      if (value !== null) object[name] = decoder ? decoder.mapFromDriverValue(value) : value;
    });
    return object;
  };
}

/** The rows as arrays, which the database of worker/embedded has already. */
const rowsOf = (result: { rows?: unknown[][]; results: object[] }): unknown[][] =>
  result.rows ?? result.results.map((row) => Object.values(row));

/** What `db.batch` takes: a prepared query whose parameters are filled in. */
export function bound(
  client: D1Database,
  db: Db,
  query: ((db: Db) => Preparable) | SQL,
  values: Record<string, unknown>,
) {
  let known = writtenOf.get(client);
  if (!known) writtenOf.set(client, (known = new WeakMap()));
  let written = known.get(query);
  if (!written) {
    const prepared: Prepared =
      typeof query === "function" ? query(db).prepare() : rawStatement(client, db, query);
    known.set(query, (written = { prepared, mapRow: rowMapper(prepared) }));
  }
  const { prepared, mapRow } = written;
  const { sql, params } = prepared.getQuery();
  const filled = { sql, params: fillPlaceholders(params, values) };
  const item = Object.create(prepared, { getQuery: { value: () => filled } }) as object;
  const mapResult = mapRow && ((result: Parameters<typeof rowsOf>[0]) => rowsOf(result).map(mapRow));
  return Object.assign(item, { _prepare: () => item }, mapResult && { mapResult });
}

/** drizzle-orm's own `db.run` binds no parameters in a batch: it looks for them at a statement that it never made. */
export function rawStatement(client: D1Database, db: Db, query: SQL) {
  const raw = db.run(query);
  const written = raw.getQuery();
  return Object.assign(raw, { stmt: client.prepare(written.sql), getQuery: () => written });
}

import { eq, lt, or, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { ListQuery, Page } from "../../protocol/api/common.ts";
import { invalid } from "../domain/app-error.ts";

/** The cursor of a first page where it is a placeholder: it sorts after every id. */
export const afterAllIds = "~";

/** Newest first: ids sort by time, so the cursor is the last id shown. */
export const before = (column: SQLiteColumn, query: ListQuery): SQL | undefined =>
  query.cursor === undefined ? undefined : lt(column, query.cursor);

/** A filter of a list: the column has this value, if one is asked for. */
export const only = (column: SQLiteColumn, value: string | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value);

/** Whether one of these contains the text, in any case of ASCII letters. No character of it is special. */
export const containing = (text: string | undefined, ...columns: SQLWrapper[]): SQL | undefined =>
  text === undefined
    ? undefined
    : or(...columns.map((column) => sql`instr(lower(${column}), lower(${text})) > 0`));

/** Takes one row more than `limit`, which shows whether there is a next page. */
export function page<Row extends { id: string }, Item>(
  rows: Row[],
  query: Pick<ListQuery, "limit">,
  view: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, query.limit);
  return { data: shown.map(view), nextCursor: rows.length > query.limit ? (shown.at(-1)?.id ?? null) : null };
}

/** The items of all pages, each of which is read once it is needed. */
export async function* everyItem<Item>(
  read: (cursor: string | undefined) => Promise<Page<Item>>,
): AsyncGenerator<Item, undefined> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const { data, nextCursor } = await read(cursor);
    yield* data;
    cursor = nextCursor;
  }
}

/** For a short list with its own order that is read as a whole. @throws AppError invalid_request */
export function pageOfAll<Row extends { id: string }, Item>(
  rows: Row[],
  query: ListQuery,
  view: (row: Row) => Item,
): Page<Item> {
  if (query.cursor === undefined) return page(rows, query, view);
  const last = rows.findIndex(({ id }) => id === query.cursor);
  if (last < 0)
    throw invalid("cursor", "the referenced entry is no longer in this list: start without a cursor");
  return page(rows.slice(last + 1), query, view);
}

import { is } from "drizzle-orm";
import { SQLiteSelectBase } from "drizzle-orm/sqlite-core";

/** Raw and prepared statements expose their SQL; among the builder's statements, all but SELECT write. */
export const writes = (statement: object): boolean =>
  "getQuery" in statement
    ? /^\s*(?:with\b[^]*?\)\s*)?(?:insert|update|delete)\b/i.test(
        (statement as { getQuery(): { sql: string } }).getQuery().sql,
      )
    : !is(statement, SQLiteSelectBase);

import { sql, type SQL } from "drizzle-orm";

/**
 * A parameter of a statement that is prepared once (`ctx.hot`). The plus has no other effect: SQLite re-plans a
 * statement on each run if a join compares a bare parameter.
 */
export const param = (name: string): SQL => sql`+${sql.placeholder(name)}`;

import { sql, type SQL } from "drizzle-orm";

/**
 * A parameter of a statement that is written once (`ctx.hot`). With a plus, which changes nothing else: SQLite plans a statement
 * that compares a bare parameter in a join anew in each run.
 */
export const param = (name: string): SQL => sql`+${sql.placeholder(name)}`;

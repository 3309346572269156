import { sql, type SQL, type SQLWrapper } from "drizzle-orm";

/** Nothing of this lane waits or is worked on. */
export const idleLane = (lane: SQLWrapper | string): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM jobs WHERE lane = ${lane} AND status IN ('QUEUED', 'LEASED'))`;

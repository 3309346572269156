import { sql } from "drizzle-orm";
import type { Id } from "../../protocol/ids.ts";
import type { Db } from "../ctx.ts";
import { bound } from "./prepared.ts";
import { writes } from "./writes.ts";

/** The changes that triggers wrote down in this batch, or that a statement without a batch left. One index lookup if there are none. */
const untold = sql`UPDATE changes SET told = 1 WHERE told = 0 RETURNING account_id AS accountId`;

/**
 * The same database, whose batches answer for their effects: `announce` receives the followed accounts that a writing batch
 * changed. It costs no round trip.
 */
export function announcing(client: D1Database, db: Db, announce: (accountId: Id<"account">) => void): Db {
  const batch = async (statements: Parameters<Db["batch"]>[0]): Promise<unknown> => {
    if (!statements.some(writes)) return db.batch(statements);
    const all = [...statements, bound(client, db, untold, {})] as never as Parameters<Db["batch"]>[0];
    const answers = (await db.batch(all)) as readonly unknown[];
    const { results } = answers.at(-1) as { results: { accountId: Id<"account"> }[] };
    for (const accountId of new Set(results.map((row) => row.accountId))) announce(accountId);
    return answers.slice(0, -1);
  };
  return Object.assign(Object.create(db) as Db, { batch });
}

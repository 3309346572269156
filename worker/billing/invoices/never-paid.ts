import { eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";
import { conflict } from "../../domain/app-error.ts";

/** Limit per account on sites and databases awaiting their first payment, and separately on invoices for credits. */
export const maxNeverPaid = 100;

/** A query that counts them. */
export const neverPaid = (ctx: Ctx, accountId: Id<"account">) =>
  ctx.db
    .select({
      count: sql<number>`(SELECT count(*) FROM sites WHERE account_id = ${accountId} AND status = 'PENDING')
        + (SELECT count(*) FROM databases WHERE account_id = ${accountId} AND status = 'PENDING')`.as(
        "count",
      ),
    })
    .from(accounts)
    .where(eq(accounts.id, accountId));

/** @throws AppError conflict if the limit is reached */
export function refuseMoreUnpaid([found]: { count: number }[]): void {
  if ((found?.count ?? 0) < maxNeverPaid) return;
  throw conflict(
    `${maxNeverPaid} of your sites and databases are awaiting their first payment: pay for some of them or delete them, then create this one.`,
  );
}

import { sql } from "drizzle-orm";
import type { AccountDeletion } from "../../../protocol/api/self-service.ts";
import { accountOf, type Ctx } from "../../ctx.ts";

type Obstacle = AccountDeletion["obstacles"][number]["code"];

/** How often each stands in the way of deleting account `a`. */
export const obstaclesOf: Record<Obstacle, ReturnType<typeof sql>> = {
  operator: sql`(a.role = 'operator')`,
  sites: sql`(SELECT count(*) FROM sites WHERE account_id = a.id)`,
  databases: sql`(SELECT count(*) FROM databases WHERE account_id = a.id)`,
  unpaid_invoices: sql`(SELECT count(*) FROM invoices WHERE account_id = a.id AND status = 'unpaid')`,
  refunds: sql`(SELECT count(*) FROM refunds r JOIN invoices i ON i.id = r.invoice_id WHERE i.account_id = a.id AND r.status = 'pending')`,
};

const reasons: Record<Obstacle, string> = {
  operator: "It is an operator account. Another operator must change its role to user first.",
  sites: "It has sites. Delete them first, and wait until they are gone.",
  databases: "It has databases. Delete them first, and wait until they are gone.",
  unpaid_invoices: "It has unpaid invoices. Pay or cancel them first.",
  refunds: "A refund is in progress. Wait until it is complete.",
};

/** Whether the caller's account can be deleted, and what is lost with it. */
export async function getAccountDeletion(ctx: Ctx): Promise<AccountDeletion> {
  const codes = Object.keys(obstaclesOf) as Obstacle[];
  const id = accountOf(ctx);
  const [row] = await ctx.db.all<Record<Obstacle | "credits" | "backups", number>>(sql`SELECT
    ${sql.join(
      codes.map((code) => sql`${obstaclesOf[code]} AS ${sql.raw(code)}`),
      sql`, `,
    )},
    coalesce((SELECT balance FROM ledger_accounts WHERE id = a.id), 0) AS credits,
    (SELECT count(*) FROM backups WHERE account_id = a.id AND removed_at IS NULL) AS backups
    FROM accounts a WHERE a.id = ${id}`);
  if (!row) throw new Error(`There is no account ${id}`);
  return {
    obstacles: codes
      .filter((code) => row[code] > 0)
      .map((code) => ({ code, count: row[code], reason: reasons[code] })),
    credits: row.credits,
    backups: row.backups,
  };
}

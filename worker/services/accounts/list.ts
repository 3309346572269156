import { and, desc, eq, isNotNull, isNull } from "drizzle-orm";
import type { Account, AccountListQuery } from "../../../protocol/api/accounts.ts";
import type { Page } from "../../../protocol/api/common.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";
import { before, containing, page } from "../page.ts";
import { accountView } from "./view.ts";

export async function listAccounts(ctx: Ctx, query: AccountListQuery): Promise<Page<Account>> {
  const named = query.email === undefined ? undefined : eq(accounts.email, query.email.toLowerCase());
  const rows = await ctx.db
    .select()
    .from(accounts)
    .where(
      and(
        named,
        containing(query.search, accounts.id, accounts.name, accounts.email),
        query.suspended === "1" ? isNotNull(accounts.suspendedAt) : undefined,
        query.suspended === "0" ? isNull(accounts.suspendedAt) : undefined,
        before(accounts.id, query),
      ),
    )
    .orderBy(desc(accounts.id))
    .limit(query.limit + 1);
  return page(rows, query, accountView);
}

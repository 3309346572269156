import { eq, sql } from "drizzle-orm";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { accounts, apiKeys } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { accountView } from "./view.ts";

/** The caller's account, and the key that the request was made with. */
export async function getAccount(ctx: Ctx): Promise<OwnAccount> {
  const keyId = ctx.actor.type === "key" ? ctx.actor.keyId : null;
  const [row] = await ctx.db
    .select({ account: accounts, keyName: apiKeys.name })
    .from(accounts)
    .leftJoin(apiKeys, keyId === null ? sql`false` : eq(apiKeys.id, keyId))
    .where(eq(accounts.id, accountOf(ctx)));
  if (!row) throw new AppError("not_found");
  const key = keyId === null ? null : { id: keyId, name: row.keyName ?? "" };
  return { ...accountView(row.account), key };
}

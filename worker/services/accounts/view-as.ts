import { eq } from "drizzle-orm";
import { isId } from "../../../protocol/ids.ts";
import { credentialOf, type Actor, type Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";

/** The operator who acts, as a viewer of this account. @throws AppError forbidden, not_found */
export async function viewerOf(ctx: Ctx, accountId: string): Promise<Actor> {
  const { actor } = ctx;
  if ((actor.type !== "key" && actor.type !== "session") || actor.role !== "operator")
    throw new AppError("forbidden");
  if (!isId("account", accountId)) throw new AppError("not_found");
  const [account] = await ctx.db
    .select({ plan: accounts.plan })
    .from(accounts)
    .where(eq(accounts.id, accountId));
  if (!account) throw new AppError("not_found");
  return { type: "viewer", accountId, role: "user", plan: account.plan, credential: credentialOf(ctx) };
}

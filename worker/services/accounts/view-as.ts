import { eq } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import { credentialOf, type Actor, type Ctx } from "../../ctx.ts";
import { accounts } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { recorded } from "../activity/record.ts";
import { idIn } from "../owned.ts";

/** The operator who acts, as a viewer of this account. @throws AppError forbidden, not_found */
export async function viewerOf(ctx: Ctx, id: string): Promise<Actor> {
  const { actor } = ctx;
  if ((actor.type !== "key" && actor.type !== "session") || actor.role !== "operator")
    throw new AppError("forbidden");
  const accountId = idIn("account", id);
  const [account] = await ctx.db
    .select({ plan: accounts.plan })
    .from(accounts)
    .where(eq(accounts.id, accountId));
  if (!account) throw new AppError("not_found");
  return { type: "viewer", accountId, role: "user", plan: account.plan, credential: credentialOf(ctx) };
}

/** That an operator begins to look is a change in the account's record, where their reads are none. @throws as `viewerOf` */
export async function recordView(ctx: Ctx, id: Id<"account">): Promise<void> {
  await viewerOf(ctx, id);
  await recorded(ctx, { id: "viewAs", operation: { access: "operator" }, input: { id } }, () =>
    Promise.resolve(),
  );
}

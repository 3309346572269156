import type { ById } from "../../../protocol/api/common.ts";
import { and, eq, ne, or, sql } from "drizzle-orm";
import type { Account, AccountPatch } from "../../../protocol/api/accounts.ts";
import type { Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { idIn } from "../owned.ts";
import { changeForGuards, tellOfChange } from "./tell-guards.ts";
import { accountView } from "./view.ts";

/**
 * The only way to change a role or plan, and the operators' note. Key guards cache both and are notified before this returns; the timer
 * completes interrupted notifications.
 */
export async function changeAccount(ctx: Ctx, { id, ...patch }: ById & AccountPatch): Promise<Account> {
  const accountId = idIn("account", id);
  const others = sql`(SELECT 1 FROM ${accounts} o WHERE o.role = 'operator' AND o.id <> ${accountId})`;
  const stays = patch.role === "user" ? or(ne(accounts.role, "operator"), sql`EXISTS ${others}`) : undefined;
  const {
    changed: [changed],
    keys,
  } = await batch(ctx, {
    changed: ctx.db
      .update(accounts)
      .set({ ...patch, ...(patch.note === "" && { note: null }), updatedAt: ctx.now() })
      .where(and(eq(accounts.id, accountId), stays))
      .returning(),
    keys: changeForGuards(ctx, accountId),
  });
  await Promise.all(keys.map((key) => tellOfChange(ctx, key)));
  if (changed) return accountView(changed);
  const [row] = await ctx.db.select().from(accounts).where(eq(accounts.id, accountId));
  if (!row) throw new AppError("not_found");
  throw conflict("This is the only operator. Make another account an operator first.");
}

import { eq } from "drizzle-orm";
import type { Account } from "../../../protocol/api/accounts.ts";
import type { ProfilePatch } from "../../../protocol/api/self-service.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { batch } from "../../db/batch.ts";
import { accounts } from "../../db/schema.ts";
import { requireFound } from "../owned.ts";
import { accountView } from "./view.ts";

export async function changeProfile(ctx: Ctx, { name }: ProfilePatch): Promise<Account> {
  const { changed } = await batch(ctx, {
    changed: ctx.db
      .update(accounts)
      .set({ name, updatedAt: ctx.now() })
      .where(eq(accounts.id, accountOf(ctx)))
      .returning(),
  });
  return accountView(requireFound(changed[0]));
}

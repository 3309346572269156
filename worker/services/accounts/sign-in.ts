import { eq } from "drizzle-orm";
import type { Ctx } from "../../context.ts";
import { accounts, sessions } from "../../db/schema.ts";
import { AppError } from "../../domain/app-error.ts";
import { addDays } from "../../domain/pricing.ts";
import { base62, sha256Hex } from "../../domain/tokens.ts";
import { isPassword } from "./password.ts";

export const sessionDays = 30;

/** A new session's token. An unknown e-mail and a wrong password are refused alike. @throws AppError unauthorized */
export async function signIn(ctx: Ctx, email: string, password: string): Promise<string> {
  const [account] = await ctx.db
    .select()
    .from(accounts)
    .where(eq(accounts.email, email.trim().toLowerCase()));
  const matches = await isPassword(password, account?.passwordHash ?? null);
  if (!account || !matches) throw new AppError("unauthorized");
  const token = base62(ctx.random(32));
  const now = ctx.now();
  await ctx.db.insert(sessions).values({
    tokenHash: sha256Hex(token),
    accountId: account.id,
    createdAt: now,
    expiresAt: addDays(now, sessionDays),
  });
  return token;
}

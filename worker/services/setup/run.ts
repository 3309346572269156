import { eq } from "drizzle-orm";
import { timingSafeEqual } from "node:crypto";
import type { Setup } from "../../../protocol/api/setup.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, apiKeys, identities } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { hashPassword } from "../../adapters/password.ts";
import { newApiKey } from "../keys/create.ts";

/**
 * Creates the first account, an operator, and its first API key, once per installation, for the bearer of SETUP_TOKEN.
 */
export async function runSetup(
  ctx: Ctx,
  token: string,
  input: Setup,
): Promise<{ accountId: string; apiKey: string }> {
  const expected = ctx.config.SETUP_TOKEN;
  if (
    expected === undefined ||
    !timingSafeEqual(Buffer.from(sha256Hex(token)), Buffer.from(sha256Hex(expected)))
  )
    throw new AppError("unauthorized");
  const [operator] = await ctx.db
    .select({ id: accounts.id })
    .from(accounts)
    .where(eq(accounts.role, "operator"))
    .limit(1);
  if (operator) throw conflict("This installation is already set up. Sign in with the operator's account.");
  const password = await hashPassword(input.password, ctx.random(16));
  const now = ctx.now();
  const accountId = ctx.newId("account");
  const { key, row } = await newApiKey(ctx, accountId, "Set-up", "setup");
  await ctx.db.batch([
    ctx.db.insert(accounts).values({
      id: accountId,
      name: input.name,
      email: input.email.toLowerCase(),
      // The address needs no confirmation, since SETUP_TOKEN authenticates the caller.
      emailVerified: true,
      role: "operator",
      createdAt: now,
      updatedAt: now,
    }),
    ctx.db.insert(identities).values({
      id: ctx.newId("identity"),
      userId: accountId,
      providerId: "credential",
      accountId,
      password,
      createdAt: now,
      updatedAt: now,
    }),
    ctx.db.insert(apiKeys).values(row),
  ]);
  return { accountId, apiKey: key };
}

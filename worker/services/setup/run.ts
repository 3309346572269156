import { and, eq, isNull } from "drizzle-orm";
import { timingSafeEqual } from "node:crypto";
import type { Setup } from "../../../protocol/api/setup.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, apiKeys, identities } from "../../db/schema.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { hashPassword, isPassword } from "../../adapters/password.ts";
import { newApiKey } from "../keys/create.ts";

/**
 * Creates the first account, an operator, and its first API key, once per installation, for the bearer of SETUP_TOKEN.
 * @throws AppError unauthorized, conflict
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
  if (operator) return setUpAgain(ctx, operator.id, input);
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

/** The first answer may have been lost: another key replaces the one that was never used. */
async function setUpAgain(ctx: Ctx, accountId: Id<"account">, { email, password }: Setup) {
  const [account] = await ctx.db
    .select({ password: identities.password })
    .from(accounts)
    .innerJoin(identities, eq(identities.accountId, accounts.id))
    .where(and(eq(accounts.id, accountId), eq(accounts.email, email.toLowerCase())));
  const { key, row } = await newApiKey(ctx, accountId, "Set-up", "setup");
  const replaced =
    account !== undefined && (await isPassword(password, account.password))
      ? await ctx.db
          .update(apiKeys)
          .set({ hash: row.hash, start: row.start })
          .where(
            and(
              eq(apiKeys.accountId, accountId),
              eq(apiKeys.origin, "setup"),
              isNull(apiKeys.lastUsedAt),
              isNull(apiKeys.revokedAt),
            ),
          )
          .returning({ id: apiKeys.id })
      : [];
  if (replaced.length === 0)
    throw conflict("This installation is already set up. Sign in with the operator's account.");
  return { accountId, apiKey: key };
}

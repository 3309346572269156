import { createOTP } from "@better-auth/utils/otp";
import { and, eq, sql } from "drizzle-orm";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, twoFactors, verifications } from "../../db/schema.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { sha256Hex } from "../../domain/tokens.ts";

const periodSeconds = 30;
const maxFailures = 10;
const lockedMs = 15 * 60_000;
/** Longer than any code is accepted: its own half minute, the one before and the one after. */
const claimedMs = 3 * 60_000;

/** A code as people type it: apps show six digits in two groups. */
export const codeIn = (typed: string): string => typed.replaceAll(/\s/g, "");
export const isAppCode = (code: string): boolean => /^\d{6}$/.test(code);

const usedCodeId = (accountId: string, code: string) => sha256Hex(`code ${accountId} ${code}`);

/** Takes a right code of an app; false: it was used before (RFC 6238, section 5.2). */
export async function claimCode(ctx: Ctx, accountId: string, code: string): Promise<boolean> {
  const now = ctx.now().getTime();
  const rows = await ctx.db.all(sql`
    INSERT INTO verifications (id, identifier, value, expires_at, created_at, updated_at)
    VALUES (${usedCodeId(accountId, code)}, 'used-code', ${accountId}, ${now + claimedMs}, ${now}, ${now})
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at WHERE verifications.expires_at < ${now} RETURNING id`);
  return rows.length > 0;
}

export async function hasSecondFactor(ctx: Ctx, accountId: Id<"account">): Promise<boolean> {
  const [row] = await ctx.db
    .select({ isOn: accounts.twoFactorEnabled })
    .from(accounts)
    .where(eq(accounts.id, accountId));
  return row?.isOn === true;
}

type Row = typeof twoFactors.$inferSelect;

/**
 * For changes that a borrowed browser must not make: if the account signs in with a second step, they take a code of it, or a recovery
 * code, which is used up. Ten wrong ones lock it for fifteen minutes, as at sign-in. @returns gives the code back, if what it is for is
 * refused @throws AppError invalid_request, rate_limited
 */
export async function requireSecondFactor(
  ctx: Ctx,
  accountId: Id<"account">,
  typed: string,
): Promise<() => Promise<void>> {
  const [row] = await ctx.db
    .select({ twoFactor: twoFactors })
    .from(twoFactors)
    .innerJoin(accounts, eq(accounts.id, twoFactors.accountId))
    .where(and(eq(accounts.id, accountId), accounts.twoFactorEnabled, twoFactors.verified));
  if (!row) return async () => undefined;
  const { id, lockedUntil } = row.twoFactor;
  const now = ctx.now().getTime();
  const lockedForMs = (lockedUntil?.getTime() ?? 0) - now;
  if (lockedForMs > 0)
    throw new AppError("rate_limited", { retryAfterSeconds: Math.ceil(lockedForMs / 1000) });
  const code = codeIn(typed);
  if (code === "") throw invalid("code", "the code from your app, or a recovery code");
  const giveBack = await (isAppCode(code)
    ? useAppCode(ctx, row.twoFactor, code)
    : useRecoveryCode(ctx, row.twoFactor, code));
  await ctx.db.run(
    giveBack
      ? sql`UPDATE two_factors SET failed_verification_count = 0, locked_until = NULL WHERE id = ${id}`
      : sql`UPDATE two_factors SET failed_verification_count =
            CASE WHEN failed_verification_count + 1 >= ${maxFailures} THEN 0 ELSE failed_verification_count + 1 END,
          locked_until = CASE WHEN failed_verification_count + 1 >= ${maxFailures} THEN ${now + lockedMs} END
        WHERE id = ${id}`,
  );
  if (!giveBack) throw invalid("code", "is wrong or was used before: wait for the next one");
  return giveBack;
}

/** @returns gives it back; null: it is wrong or was used before */
type Use = (ctx: Ctx, row: Row, code: string) => Promise<(() => Promise<void>) | null>;

const useAppCode: Use = async (ctx, row, code) => {
  if (!(await isCodeOf(ctx, row, code)) || !(await claimCode(ctx, row.accountId, code))) return null;
  return async () =>
    void (await ctx.db.delete(verifications).where(eq(verifications.id, usedCodeId(row.accountId, code))));
};

async function isCodeOf(ctx: Ctx, { id, secret }: Row, code: string): Promise<boolean> {
  const codes = createOTP(ctx.secrets.open(secret, `two_factors.secret:${id}`), { period: periodSeconds });
  const step = Math.floor(ctx.now().getTime() / 1000 / periodSeconds);
  const right = await Promise.all([step - 1, step, step + 1].map((one) => codes.hotp(one)));
  return right.includes(code);
}

const useRecoveryCode: Use = async (ctx, { id, backupCodes }, code) => {
  const place = `two_factors.backup_codes:${id}` as const;
  const codes = JSON.parse(ctx.secrets.open(backupCodes, place)) as string[];
  if (!codes.includes(code)) return null;
  const left = ctx.secrets.seal(JSON.stringify(codes.filter((one) => one !== code)), place);
  const replace = (from: string, to: string) =>
    ctx.db
      .update(twoFactors)
      .set({ backupCodes: to })
      .where(and(eq(twoFactors.id, id), eq(twoFactors.backupCodes, from)))
      .returning({ id: twoFactors.id });
  const used = await replace(backupCodes, left);
  return used.length > 0 ? async () => void (await replace(left, backupCodes)) : null;
};

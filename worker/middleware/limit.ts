import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { countedAs } from "../domain/client-address.ts";
import type { Window } from "../domain/sliding-window.ts";
import { logError } from "../log-error.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

/** Limits of everything but keys, which have their own guard. */
export const limits = {
  /** Per account, for sessions. */
  session: { limit: 600, windowMs: minute },
  /** Per client address, for endpoints without credentials. */
  address: { limit: 600, windowMs: minute },
  /** Per deploy webhook: Git hosts send for all their customers from a few addresses. */
  webhook: { limit: 120, windowMs: minute },
  /** Keys made per account, approved devices' too: each has a limit and a guard of its own, and may be revoked at once. */
  keyMade: { limit: 300, windowMs: day },
  /** Passwords hashed, right or wrong, per address: so many take two seconds of processor. */
  passwords: { limit: 20, windowMs: minute },
  /** Wrong passwords, per e-mail and address. */
  signIn: { limit: 10, windowMs: 5 * minute },
  /** Per address. */
  signUp: { limit: 100, windowMs: 60 * minute },
  /** Mails asked for, per e-mail and address. */
  mailed: { limit: 5, windowMs: 60 * minute },
  /** The assistant, per account and plan. */
  chatFree: { limit: 10, windowMs: minute },
  chatFreeDaily: { limit: 100, windowMs: day },
  chatPro: { limit: 30, windowMs: minute },
  chatProDaily: { limit: 1000, windowMs: day },
  /**
   * Wrong device codes. There are 27^8 = 2.8 × 10^11: where a thousand wait at once, ten guesses an hour of each of ten thousand
   * accounts find one in three years. None is counted for everybody, or some could lock all others out.
   */
  guessesOfAccount: { limit: 10, windowMs: 60 * minute },
  guessesOfAddress: { limit: 20, windowMs: 60 * minute },
} as const satisfies Record<string, Window>;

/** Set by Cloudflare at the edge; nobody else stands before the Worker. */
export const clientAddress = (c: Context<AppEnv>): string => c.req.header("CF-Connecting-IP") ?? "unknown";

/** The address as limits count it. */
export const countedAddress = (c: Context<AppEnv>): string => countedAs(clientAddress(c));

const counterOf = (c: Context<AppEnv>, limit: keyof typeof limits, who: string) =>
  c.env.RATE_LIMIT.get(c.env.RATE_LIMIT.idFromName(`${limit}:${who}`));

/** Counts one use of the thing named. @throws AppError rate_limited */
export async function takeFrom(c: Context<AppEnv>, limit: keyof typeof limits, who: string): Promise<void> {
  const retryAfterSeconds = await counterOf(c, limit, who).take(limits[limit]);
  if (retryAfterSeconds > 0) throw new AppError("rate_limited", { retryAfterSeconds });
}

/**
 * Counts a request; where that cannot be written, as on a full disk, one that only reads goes on. A counter that is asked too
 * much for its one place is no such case. @throws AppError rate_limited
 */
export async function takeForRequest(
  c: Context<AppEnv>,
  limit: "session" | "address",
  who: string,
): Promise<void> {
  try {
    await takeFrom(c, limit, who);
  } catch (error) {
    const isRead = c.req.method === "GET" || c.req.method === "HEAD";
    if (error instanceof AppError || !isRead || (error as { overloaded?: boolean }).overloaded) throw error;
    logError({ limit }, error);
  }
}

/** What was counted last counts for nothing after all. */
export const giveBack = (c: Context<AppEnv>, limit: keyof typeof limits, who: string): Promise<void> =>
  counterOf(c, limit, who).giveBack();

/**
 * Looks something up that must not be guessed: only a miss (nothing, not_found, unauthorized) counts, but every budget is
 * asked before, so that nothing is learnt or done once one is used up. @throws AppError rate_limited
 */
export async function guessWithin<Found>(
  c: Context<AppEnv>,
  budgets: [limit: keyof typeof limits, who: string][],
  lookUp: () => Promise<Found>,
): Promise<Found> {
  const taken: typeof budgets = [];
  const giveAllBack = () => Promise.all(taken.map((budget) => giveBack(c, ...budget)));
  try {
    for (const budget of budgets) {
      await takeFrom(c, ...budget);
      taken.push(budget);
    }
  } catch (error) {
    await giveAllBack();
    throw error;
  }
  let isMiss = true;
  try {
    const found = await lookUp();
    isMiss = !found;
    return found;
  } catch (error) {
    isMiss = error instanceof AppError && (error.code === "not_found" || error.code === "unauthorized");
    throw error;
  } finally {
    if (!isMiss) await giveAllBack();
  }
}

export const limitAddress = createMiddleware<AppEnv>(async (c, next) => {
  await takeForRequest(c, "address", countedAddress(c));
  await next();
});

/** What the account's plan lets it say to the assistant. @throws AppError rate_limited */
export async function takeForChat(c: Context<AppEnv>): Promise<void> {
  const { actor } = c.var.ctx;
  if (actor.type !== "key" && actor.type !== "session") throw new AppError("unauthorized");
  const isPro = actor.plan === "pro";
  await takeFrom(c, isPro ? "chatPro" : "chatFree", actor.accountId);
  await takeFrom(c, isPro ? "chatProDaily" : "chatFreeDaily", actor.accountId);
}

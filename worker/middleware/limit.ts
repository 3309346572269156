import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { countedAs } from "../../protocol/client-address.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { logError } from "../log-error.ts";
import type { CountedWindow } from "../objects/rpc.ts";

const minute = 60_000;
const day = 24 * 60 * minute;

/** All limits except those of API keys, which their guard enforces. */
export const limits = {
  /** Per account, for sessions. */
  session: { limit: 600, windowMs: minute, isLate: true },
  /** Per client address, for endpoints without credentials. */
  address: { limit: 600, windowMs: minute, isLate: true },
  /** Per deploy webhook, because a Git host sends for all its customers from a few addresses. */
  webhook: { limit: 120, windowMs: minute },
  /**
   * Keys created per account, including approved devices': each key has its own limit and guard, and can be revoked
   * immediately.
   */
  keyMade: { limit: 300, windowMs: day },
  /** Repositories that hosts read for an account before a site is created. */
  sourceInspected: { limit: 20, windowMs: minute },
  /** Requests from outside to an account's sites. */
  siteProbed: { limit: 30, windowMs: minute },
  /** Test notifications of an account. */
  notificationTested: { limit: 10, windowMs: minute },
  /** Tunnels and terminals opened, per account; a pool of connections opens several at once. */
  streamOpened: { limit: 120, windowMs: minute },
  /** Exports of an account's data: each reads all of it. */
  accountExported: { limit: 5, windowMs: 60 * minute },
  /** Password hashes per address, for right and wrong passwords; this many take two seconds of CPU. */
  passwords: { limit: 20, windowMs: minute },
  /** Wrong passwords, per email address and client address. */
  signIn: { limit: 10, windowMs: 5 * minute },
  /** Wrong codes of the second step, per client address; each account has its own limit (second-factor.ts). */
  secondStep: { limit: 30, windowMs: 15 * minute },
  /** Per client address. */
  signUp: { limit: 100, windowMs: 60 * minute },
  /** Requested mails, per email address and client address; changes of address, per account. */
  mailed: { limit: 5, windowMs: 60 * minute },
  /**
   * Mails of sign-up, sign-in and changes of address, per subject and recipient, whoever causes them. Their links are valid for as
   * long: whom a stranger's mails keep from getting another has ten that work.
   */
  mailedTo: { limit: 10, windowMs: 60 * minute },
  /** Messages to the assistant, per account and plan. */
  chatFree: { limit: 10, windowMs: minute },
  chatFreeDaily: { limit: 100, windowMs: day },
  chatPro: { limit: 30, windowMs: minute },
  chatProDaily: { limit: 1000, windowMs: day },
  /**
   * Wrong device codes. There are 23^8 = 7.8 × 10^10: with a thousand pending at once, ten guesses per hour from each
   * of ten thousand accounts find one in a year. There is no global limit, since it could be used to lock
   * everyone out.
   */
  guessesOfAccount: { limit: 10, windowMs: 60 * minute },
  guessesOfAddress: { limit: 20, windowMs: 60 * minute },
} as const satisfies Record<string, CountedWindow>;

/** Set by Cloudflare at the edge; only Cloudflare can reach the Worker. */
export const clientAddress = (c: Context<AppEnv>): string => c.req.header("CF-Connecting-IP") ?? "unknown";

/** The client's address in the form in which limits count it. */
export const countedAddress = (c: Context<AppEnv>): string => countedAs(clientAddress(c));

type Counting = Pick<Context<AppEnv>, "env">;

const counterOf = (c: Counting, limit: keyof typeof limits, who: string) =>
  c.env.RATE_LIMIT.get(c.env.RATE_LIMIT.idFromName(`${limit}:${who}`));

/** Counts one use of the named resource. @throws AppError rate_limited */
export async function takeFrom(c: Counting, limit: keyof typeof limits, who: string): Promise<void> {
  const retryAfterSeconds = await counterOf(c, limit, who).take(limits[limit]);
  if (retryAfterSeconds > 0) throw new AppError("rate_limited", { retryAfterSeconds });
}

/**
 * Counts a request. If the count cannot be written, such as on a full disk, read-only requests proceed; an overloaded
 * counter still rejects them. @throws AppError rate_limited
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

/** Takes back the last counted use. */
export const giveBack = (c: Context<AppEnv>, limit: keyof typeof limits, who: string): Promise<void> =>
  counterOf(c, limit, who).giveBack();

/**
 * Looks up something that must not be guessed. Only misses (nothing, not_found, unauthorized) count, but every limit
 * is checked first, so that an exhausted one prevents the lookup and its effects. @throws AppError rate_limited
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
  let found: Found;
  try {
    found = await lookUp();
  } catch (error) {
    const isMiss = error instanceof AppError && (error.code === "not_found" || error.code === "unauthorized");
    if (!isMiss) await giveAllBack();
    throw error;
  }
  if (found) await giveAllBack();
  return found;
}

export const limitAddress = createMiddleware<AppEnv>(async (c, next) => {
  await takeForRequest(c, "address", countedAddress(c));
  await next();
});

/** The assistant limit of the account's plan. @throws AppError rate_limited */
export async function takeForChat(c: Context<AppEnv>): Promise<void> {
  const { actor } = c.var.ctx;
  if (actor.type !== "key" && actor.type !== "session") throw new AppError("unauthorized");
  const isPro = actor.plan === "pro";
  const both = isPro ? (["chatPro", "chatProDaily"] as const) : (["chatFree", "chatFreeDaily"] as const);
  // At once: each is a call of an object, and every message waits for them.
  const taken = await Promise.allSettled(
    both.map((limit) => takeFrom(c, limit, actor.accountId).then(() => limit)),
  );
  const refusal = taken.find((one) => one.status === "rejected");
  if (!refusal) return;
  for (const one of taken) if (one.status === "fulfilled") await giveBack(c, one.value, actor.accountId);
  throw refusal.reason;
}

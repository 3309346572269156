import type { Context } from "hono";
import * as z from "zod";
import { refuseSuspended } from "../api/access.ts";
import type { AppEnv } from "../app-env.ts";
import type { Actor } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";
import { contextFor } from "../middleware/context.ts";
import { requireSecondFactor } from "../services/accounts/second-factor.ts";
import { requireRoomForKey } from "../services/keys/insert.ts";

/** What a person answers a program that asks for a key: the form of `Decide`. */
export const Decision = z.object({
  decision: z.enum(["approve", "deny"]),
  secondFactor: z.string().max(100).default(""),
});

/**
 * Why this person's approval makes no key: the code of the second step that they typed. null: it may make one, which is
 * counted. @throws AppError forbidden for a suspended account, conflict for one with as many keys as it may have,
 * rate_limited
 */
export async function approvalRefusal(
  c: Context<AppEnv>,
  actor: Actor & { type: "session" },
  secondFactor: string,
): Promise<string | null> {
  refuseSuspended(actor);
  const ctx = contextFor(c, actor);
  await requireRoomForKey(ctx, actor.accountId);
  // First: a code that is right is used up.
  await ctx.takeFrom("keyMade", actor.accountId);
  try {
    await requireSecondFactor(ctx, actor.accountId, secondFactor);
  } catch (error) {
    if (error instanceof AppError && error.code === "invalid_request")
      return "The code from your authenticator app is wrong or was used before. Wait for the next one.";
    throw error;
  }
  return null;
}

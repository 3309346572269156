import { and, eq, gt } from "drizzle-orm";
import { decodeJwt } from "jose";
import * as z from "zod";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import { accounts, verifications } from "../../db/schema.ts";
import { sha256Hex } from "../../domain/tokens.ts";

const identifier = "address-link";
const lifetimeMs = 60 * 60_000;

/** What better-auth's token says. */
const Token = z.object({
  email: z.string(),
  updateTo: z.string().optional(),
  requestType: z.string().optional(),
});

export type AddressLink = {
  accountId: Id<"account">;
  /** The one that is to be the account's. */
  email: string;
  /** `agree`: to a change, mailed to the address before. `change`: mailed to the new one. */
  step: "confirm" | "agree" | "change";
};

const rowOf = (token: string) => `address ${sha256Hex(token)}`;

/** Before the link is mailed: only one that has a row is valid, for an hour, once, and until `endLinks`. */
export async function keepAddressLink(ctx: Ctx, accountId: Id<"account">, token: string): Promise<void> {
  const now = ctx.now();
  const expiresAt = new Date(now.getTime() + lifetimeMs);
  await ctx.db
    .insert(verifications)
    .values({ id: rowOf(token), identifier, value: accountId, expiresAt, createdAt: now, updatedAt: now })
    // better-auth makes the same token twice in one second.
    .onConflictDoNothing();
}

/** The account and the address that the link is about; null: it is not valid, or not any more. */
export async function readAddressLink(ctx: Ctx, token: string): Promise<AddressLink | null> {
  const [row] = await ctx.db
    .select({ accountId: verifications.value })
    .from(verifications)
    .where(and(eq(verifications.id, rowOf(token)), gt(verifications.expiresAt, ctx.now())));
  if (!row) return null;
  // Not verified again: the row is of this very token.
  const { email, updateTo, requestType } = Token.parse(decodeJwt(token));
  const accountId = row.accountId as Id<"account">;
  if (updateTo === undefined) return { accountId, email, step: "confirm" };
  const step = requestType === "change-email-confirmation" ? "agree" : "change";
  return { accountId, email: updateTo, step };
}

/** Whether an account has the address, confirmed or not. @param email in lower case */
export async function hasAccount(ctx: Ctx, email: string): Promise<boolean> {
  const [row] = await ctx.db.select({ id: accounts.id }).from(accounts).where(eq(accounts.email, email));
  return row !== undefined;
}

/** Uses the link up; false: it was used or has ended meanwhile. */
export async function takeAddressLink(ctx: Ctx, token: string): Promise<boolean> {
  const taken = await ctx.db
    .delete(verifications)
    .where(and(eq(verifications.id, rowOf(token)), gt(verifications.expiresAt, ctx.now())))
    .returning({ id: verifications.id });
  return taken.length > 0;
}

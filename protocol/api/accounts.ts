import * as z from "zod";
import { accountPlans, accountRoles, databaseStatuses, siteStatuses } from "../states.ts";
import { listQuery, text, Timestamp } from "./common.ts";
import { Invoice } from "./invoices.ts";
import { BillingDay, NextBillingTerm } from "./packs.ts";

export const Account = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    role: z.enum(accountRoles),
    plan: z.enum(accountPlans),
    suspended: z
      .object({ at: Timestamp, reason: z.string() })
      .nullable()
      .describe("By an operator: its sites and databases are stopped, its keys refused."),
    createdAt: Timestamp,
  })
  .meta({ id: "Account" });
export type Account = z.infer<typeof Account>;

/** Text to look for, in any case. */
export const Search = text.trim().min(1).max(254).optional();

export const AccountListQuery = listQuery("account").extend({
  email: z.string().min(1).max(254).optional().describe("Only the account with this email address."),
  search: Search.describe("Only accounts whose id, name or email address contains this text."),
  suspended: z.enum(["0", "1"]).optional().describe("1: only suspended accounts; 0: only others."),
});
export type AccountListQuery = z.infer<typeof AccountListQuery>;

export const AccountPatch = z
  .strictObject({
    role: z.enum(accountRoles).optional(),
    plan: z.enum(accountPlans).optional(),
    note: text
      .trim()
      .max(4000)
      .nullable()
      .optional()
      .describe("The operators' note on the account; only they see it. null: none."),
  })
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change")
  .meta({ id: "AccountPatch" });
export type AccountPatch = z.infer<typeof AccountPatch>;

export const AccountSuspend = z
  .strictObject({ reason: text.trim().min(1).max(500).describe("Shown and mailed to the owner.") })
  .meta({ id: "AccountSuspend" });
export type AccountSuspend = z.infer<typeof AccountSuspend>;

const Limit = z.object({ used: z.number().int(), limit: z.number().int() });
const Term = {
  id: z.string(),
  name: z.string(),
  packId: z.string(),
  nextPackId: z.string().nullable(),
  billingTerm: z.number().int(),
  nextBillingTerm: NextBillingTerm,
  billingDay: BillingDay,
  paidUntil: Timestamp.nullable().describe("null: awaiting its first payment."),
};
/** The caller's own account. */
export const OwnAccount = Account.extend({
  emailVerified: z.boolean(),
  twoFactorEnabled: z.boolean().describe("Signing in requires a code from an authenticator app."),
  payment: z.object({
    verified: z.boolean().describe("An invoice of the account has been paid."),
    lastPaidAt: Timestamp.nullable(),
    unpaid: z
      .array(Invoice.pick({ id: true, kind: true, amountCents: true, currency: true, dueAt: true }))
      .describe("What is owed, due first: at most 100 invoices."),
  }),
  credits: z.object({ balance: z.number().int().describe("Includes held credits until they are spent.") }),
  limits: z.object({
    apiKeys: Limit,
    schedules: Limit,
    awaitingPayment: Limit.describe("Sites and databases that were never paid for."),
  }),
  terms: z
    .array(
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("site"), status: z.enum(siteStatuses), ...Term }),
        z.object({ kind: z.literal("database"), status: z.enum(databaseStatuses), ...Term }),
      ]),
    )
    .describe("Sites and databases by the end of their paid term, earliest first: at most 200."),
}).meta({ id: "OwnAccount" });
export type OwnAccount = z.infer<typeof OwnAccount>;

/** An account as operators see it: how much of what it has, and when it was last active. */
export const AccountForOperator = Account.extend({
  note: z.string().nullable().describe("The operators' note."),
  emailVerified: z.boolean(),
  twoFactorEnabled: z.boolean(),
  signInMethods: z.array(z.string()).describe("`credential`: a password; otherwise the provider."),
  siteCount: z.number().int(),
  databaseCount: z.number().int(),
  keyCount: z.number().int().describe("Keys that are not revoked."),
  sessionCount: z.number().int(),
  credits: z.object({
    balance: z.number().int(),
    held: z.number().int().describe("The part of the balance that is reserved for work in progress."),
  }),
  money: z
    .array(
      z.object({
        currency: z.string(),
        paidCents: z.number().int(),
        unpaidCents: z.number().int(),
        unpaidCount: z.number().int(),
      }),
    )
    .describe("The account's invoices, per currency."),
  lastChangeAt: Timestamp.nullable().describe("The newest row of the account's activity."),
  lastUsedAt: Timestamp.nullable().describe(
    "The last use of a session or key, as recorded: a day late at most.",
  ),
}).meta({ id: "AccountForOperator" });
export type AccountForOperator = z.infer<typeof AccountForOperator>;

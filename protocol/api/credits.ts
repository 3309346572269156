import * as z from "zod";
import { transactionTypes } from "../states.ts";
import { AmountCents, text, Timestamp } from "./common.ts";

/** `amount` is signed. */
export const Transaction = z
  .object({ id: z.string(), type: z.enum(transactionTypes), amount: z.number(), createdAt: Timestamp })
  .meta({ id: "Transaction" });
export type Transaction = z.infer<typeof Transaction>;

/** The last 20 transactions, newest first. */
export const Credits = z.object({ balance: z.number(), transactions: z.array(Transaction).max(20) });
export type Credits = z.infer<typeof Credits>;

export const CreditPackage = z
  .object({
    id: z.string(),
    name: z.string(),
    credits: z.number().int(),
    amountCents: z.number().int(),
    currency: z.string(),
  })
  .meta({ id: "CreditPackage" });
export type CreditPackage = z.infer<typeof CreditPackage>;

export const CreditPackageForOperator = CreditPackage.extend({ active: z.boolean() }).meta({
  id: "CreditPackageForOperator",
});
export type CreditPackageForOperator = z.infer<typeof CreditPackageForOperator>;

const credits = z.number().int().min(1).max(1_000_000_000);

export const CreditPackageCreate = z.strictObject({
  name: text.trim().min(1).max(100),
  credits,
  amountCents: AmountCents,
  active: z.boolean().default(true),
});
export type CreditPackageCreate = z.infer<typeof CreditPackageCreate>;

export const CreditPackagePatch = z
  .strictObject({
    name: text.trim().min(1).max(100).optional(),
    credits: credits.optional(),
    amountCents: AmountCents.optional(),
    active: z.boolean().optional(),
  })
  .refine((patch) => Object.keys(patch).length > 0, "name at least one field to change");
export type CreditPackagePatch = z.infer<typeof CreditPackagePatch>;

/** The recipient is an account, by id or email address. */
export const CreditGrant = z
  .strictObject({
    accountId: text.min(1).max(100).optional(),
    email: z.email().max(254).optional(),
    amount: credits,
  })
  .refine(({ accountId, email }) => (accountId === undefined) !== (email === undefined), {
    message: "either accountId or email",
    path: ["accountId"],
  });
export type CreditGrant = z.infer<typeof CreditGrant>;

export const CreditPurchase = z.strictObject({ packageId: text.min(1).max(100) });
export type CreditPurchase = z.infer<typeof CreditPurchase>;
export const CreditPurchased = z.object({ invoiceToken: z.string(), invoiceId: z.string() });
export type CreditPurchased = z.infer<typeof CreditPurchased>;

import * as z from "zod";
import { transactionTypes } from "../states.ts";
import { Timestamp } from "./common.ts";

/** `amount` is signed. */
export const Transaction = z
  .object({ id: z.string(), type: z.enum(transactionTypes), amount: z.number(), createdAt: Timestamp })
  .meta({ id: "Transaction" });

/** The last 20 transactions, newest first. */
export const Credits = z.object({ balance: z.number(), transactions: z.array(Transaction).max(20) });

export const CreditPackage = z
  .object({
    id: z.string(),
    name: z.string(),
    credits: z.number().int(),
    amountCents: z.number().int(),
    currency: z.string(),
  })
  .meta({ id: "CreditPackage" });

export const CreditPurchase = z.strictObject({ packageId: z.string().min(1).max(100) });
export const CreditPurchased = z.object({ invoiceToken: z.string(), invoiceId: z.string() });

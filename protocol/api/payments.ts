import * as z from "zod";
import { flagReasons } from "../states.ts";
import { listQuery, text, Timestamp } from "./common.ts";

/** A payment problem that an operator must review. */
export const PaymentFlag = z
  .object({
    id: z.string(),
    reason: z.enum(flagReasons),
    reference: z.string().describe("The processor's id of the payment, refund or dispute."),
    invoiceId: z.string().nullable(),
    amountCents: z.number().int().nullable(),
    currency: z.string().nullable(),
    createdAt: Timestamp,
    resolvedAt: Timestamp.nullable(),
    resolution: text.nullable(),
  })
  .meta({ id: "PaymentFlag" });
export type PaymentFlag = z.infer<typeof PaymentFlag>;

/** Lists open flags, or all flags with `resolved`. */
export const FlagQuery = listQuery("flag").extend({ resolved: z.enum(["0", "1"]).default("0") });
export type FlagQuery = z.infer<typeof FlagQuery>;

export const FlagResolve = z.strictObject({ resolution: text.trim().min(1).max(1000) });
export type FlagResolve = z.infer<typeof FlagResolve>;

export const LedgerVerified = z.object({
  ok: z.boolean(),
  transfers: z.number().int(),
  accounts: z.number().int(),
  problems: z.array(z.string()).describe("Discrepancies, one sentence each; at most 100."),
});
export type LedgerVerified = z.infer<typeof LedgerVerified>;

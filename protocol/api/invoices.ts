import * as z from "zod";
import { invoiceKinds, invoiceStatuses, refundStatuses } from "../states.ts";
import { InvoiceParties } from "./settings.ts";
import { listQuery, Timestamp } from "./common.ts";

export const Invoice = z
  .object({
    id: z.string(),
    token: z.string(),
    number: z
      .number()
      .int()
      .nullable()
      .describe("Assigned at payment, consecutively and without gaps. null: never paid."),
    kind: z.enum(invoiceKinds),
    status: z.enum(invoiceStatuses),
    amountCents: z.number().int(),
    currency: z.string(),
    lines: z.array(z.object({ description: z.string(), amountCents: z.number().int() })),
    resource: z
      .object({ id: z.string() })
      .nullable()
      .describe("The site, database or credit package that the invoice pays for."),
    tax: z
      .object({ name: z.string(), percent: z.number(), amountCents: z.number().int() })
      .nullable()
      .describe("The part of the amount that is tax, by the seller's rate when it was issued; null: none."),
    parties: InvoiceParties.nullable().describe(
      "Seller and buyer when it was issued; null: it is older than these settings.",
    ),
    createdAt: Timestamp,
    dueAt: Timestamp,
    paidAt: Timestamp.nullable(),
  })
  .meta({ id: "Invoice" });
export type Invoice = z.infer<typeof Invoice>;

export const InvoiceListQuery = listQuery("invoice").extend({
  status: z.enum(invoiceStatuses).optional().describe("Only invoices with this status."),
});
export type InvoiceListQuery = z.infer<typeof InvoiceListQuery>;

export const InvoicePageQuery = z.object({
  returned: z
    .string()
    .optional()
    .describe(
      "Set when the customer returns from the payment processor; the payment's status is then queried at once.",
    ),
});

/** `force`: refund even if the purchased credits have been spent. */
export const InvoiceRefund = z.strictObject({ force: z.boolean().default(false) });
export type InvoiceRefund = z.infer<typeof InvoiceRefund>;

/** pending: waiting for the payment processor or its bank; the status is polled. */
export const InvoiceRefunded = z.object({
  id: z.string(),
  invoiceId: z.string(),
  status: z.enum(refundStatuses),
  amountCents: z.number().int(),
  missingCredits: z
    .number()
    .int()
    .describe("Purchased credits that were already spent and could not be taken back."),
});
export type InvoiceRefunded = z.infer<typeof InvoiceRefunded>;

/** What a refund would do now; it changes nothing. */
export const RefundPreview = z
  .object({
    invoiceId: z.string(),
    amountCents: z.number().int(),
    currency: z.string(),
    refusal: z.string().nullable().describe("Why it cannot be refunded; null: it can be."),
    credits: z
      .object({ purchased: z.number().int(), missing: z.number().int() })
      .describe("The purchased credits, and how many are spent or held, so that the refund needs `force`."),
    term: z
      .object({ resourceId: z.string(), paidUntil: Timestamp, endsAt: Timestamp })
      .nullable()
      .describe("The paid term that ends earlier; null: none does."),
  })
  .meta({ id: "RefundPreview" });
export type RefundPreview = z.infer<typeof RefundPreview>;

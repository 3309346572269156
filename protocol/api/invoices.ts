import * as z from "zod";
import { invoiceKinds, invoiceStatuses, refundStatuses } from "../states.ts";
import { Timestamp } from "./common.ts";

export const Invoice = z
  .object({
    id: z.string(),
    token: z.string(),
    kind: z.enum(invoiceKinds),
    status: z.enum(invoiceStatuses),
    amountCents: z.number().int(),
    currency: z.string(),
    lines: z.array(z.object({ description: z.string(), amountCents: z.number().int() })),
    resource: z
      .object({ id: z.string() })
      .nullable()
      .describe("The site, the database or, of credits, the package that it pays for."),
    createdAt: Timestamp,
    dueAt: Timestamp,
    paidAt: Timestamp.nullable(),
  })
  .meta({ id: "Invoice" });
export type Invoice = z.infer<typeof Invoice>;

export const InvoicePageQuery = z.object({
  returned: z
    .string()
    .optional()
    .describe("The customer comes back from the payment processor, which is asked about it at once."),
});

/** `force`: also where credits that were bought are spent already. */
export const InvoiceRefund = z.strictObject({ force: z.boolean().default(false) });
export type InvoiceRefund = z.infer<typeof InvoiceRefund>;

/** pending: the processor has not answered yet, or its bank has not; it is asked again. */
export const InvoiceRefunded = z.object({
  id: z.string(),
  invoiceId: z.string(),
  status: z.enum(refundStatuses),
  amountCents: z.number().int(),
  missingCredits: z.number().int().describe("Bought credits that were spent and could not be taken back."),
});
export type InvoiceRefunded = z.infer<typeof InvoiceRefunded>;

import * as z from "zod";
import { invoiceKinds, invoiceStatuses } from "../states.ts";
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
    /** The site or database it pays for. */
    resource: z.object({ id: z.string() }).nullable(),
    createdAt: Timestamp,
    dueAt: Timestamp,
    paidAt: Timestamp.nullable(),
  })
  .meta({ id: "Invoice" });
export type Invoice = z.infer<typeof Invoice>;

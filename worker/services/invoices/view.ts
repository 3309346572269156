import type { Invoice } from "../../../protocol/api/invoices.ts";
import type { InvoiceRow } from "../../db/rows.ts";

export const invoiceView = (row: InvoiceRow): Invoice => ({
  id: row.id,
  token: row.token,
  kind: row.kind,
  status: row.status,
  amountCents: row.amountCents,
  currency: row.currency,
  lines: row.lines,
  resource: row.resourceId === null ? null : { id: row.resourceId },
  createdAt: row.createdAt.toISOString(),
  dueAt: row.dueAt.toISOString(),
  paidAt: row.paidAt?.toISOString() ?? null,
});

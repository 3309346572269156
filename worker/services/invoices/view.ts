import type { Invoice } from "../../../protocol/api/invoices.ts";
import { noDetails } from "../billing-details/change.ts";
import { defaultBrand, defaultSeller } from "../settings/read.ts";
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
  parties: row.parties && {
    brandName: row.parties.brandName ?? defaultBrand.name,
    seller: row.parties.seller ? { ...defaultSeller, ...row.parties.seller } : null,
    buyer: row.parties.buyer ? { ...noDetails, ...row.parties.buyer } : null,
  },
  createdAt: row.createdAt.toISOString(),
  dueAt: row.dueAt.toISOString(),
  paidAt: row.paidAt?.toISOString() ?? null,
});

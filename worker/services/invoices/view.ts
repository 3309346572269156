import type { Invoice } from "../../../protocol/api/invoices.ts";
import { noDetails } from "../billing-details/change.ts";
import { defaultBrand, defaultSeller } from "../settings/read.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { includedTaxCents } from "../../domain/pricing.ts";
import type { InvoiceRow } from "../../db/rows.ts";

const taxOf = ({ amountCents, parties }: InvoiceRow): Invoice["tax"] => {
  const tax = parties?.seller?.tax;
  return tax ? { ...tax, amountCents: includedTaxCents(amountCents, tax.percent) } : null;
};

export const invoiceView = (row: InvoiceRow): Invoice => ({
  id: row.id,
  token: row.token,
  number: row.number,
  kind: row.kind,
  status: row.status,
  amountCents: row.amountCents,
  currency: row.currency,
  lines: row.lines,
  resource: row.resourceId === null ? null : { id: row.resourceId },
  tax: taxOf(row),
  parties: row.parties && {
    brandName: row.parties.brandName ?? defaultBrand.name,
    seller: row.parties.seller ? { ...defaultSeller, ...row.parties.seller } : null,
    buyer: row.parties.buyer ? { ...noDetails, ...row.parties.buyer } : null,
  },
  createdAt: isoTime(row.createdAt),
  dueAt: isoTime(row.dueAt),
  paidAt: isoTime(row.paidAt),
});

import type { Invoice } from "../../protocol/api/invoices.ts";
import { textWidth, writePdf, type PdfRule, type PdfText } from "../domain/pdf.ts";
import { day, money, taxText } from "./money.ts";

const [left, right] = [60, 535];
/** The maximum that fits on one page; our invoices are far shorter. */
const maxLines = 14;
const maxNotes = 6;
/** Seller and buyer, in the right half. */
const columnAt = 320;
const columnWidth = right - columnAt;

const linesOf = (texts: readonly (string | false | null | undefined)[]): string[] =>
  texts.flatMap((text) => (text ? text.split(/\r?\n/) : []));

/** Truncated to the given width. */
function fitting(text: string, size: number, width: number): string {
  if (textWidth(text, size) <= width) return text;
  let cut = text;
  while (textWidth(`${cut}...`, size) > width) cut = cut.slice(0, -1);
  return `${cut}...`;
}

function stateOf({ status, paidAt }: Invoice): string {
  if (paidAt === null) return status;
  return status === "paid" ? `paid on ${day(paidAt)}` : `${status}, was paid on ${day(paidAt)}`;
}

/** The invoice as a single printable page. */
export function invoicePdf(invoice: Invoice, isTest: boolean): string {
  const { brandName, seller, buyer } = invoice.parties ?? { brandName: "Berth", seller: null, buyer: null };
  const texts: PdfText[] = [
    { text: fitting(brandName, 12, columnWidth), x: left, y: 80, size: 12, bold: true },
    { text: "Invoice", x: left, y: 120, size: 24, bold: true },
    ...linesOf([seller?.name, seller?.address, seller?.vatId && `VAT ${seller.vatId}`, seller?.email]).map(
      (text, at) => ({ text: fitting(text, 9, columnWidth), x: columnAt, y: 80 + at * 12, size: 9 }),
    ),
    ...linesOf([
      buyer && "Billed to",
      buyer?.name,
      buyer?.address,
      buyer?.country,
      buyer?.vatId && `VAT ${buyer.vatId}`,
    ]).map((text, at) => ({
      text: fitting(text, 10, columnWidth),
      x: columnAt,
      y: 215 + at * 13,
      size: 10,
      bold: at === 0,
    })),
  ];
  const facts = [
    ["Number", invoice.number === null ? "given with the payment" : String(invoice.number)],
    ["Reference", invoice.id],
    ["Date", day(invoice.createdAt)],
    ["Due", day(invoice.dueAt)],
    ["State", stateOf(invoice)],
  ] as const;
  let y = 155;
  for (const [name, value] of facts) {
    texts.push({ text: name, x: left, y, size: 10 }, { text: value, x: left + 70, y, size: 10 });
    y += 16;
  }
  y = 350;
  const rules: PdfRule[] = [{ y: y - 16, from: left, to: right }];
  for (const line of invoice.lines.slice(0, maxLines)) {
    const description = fitting(line.description, 11, right - left - 110);
    const amount = money(line.amountCents, invoice.currency);
    texts.push(
      { text: description, x: left, y, size: 11 },
      { text: amount, x: right, y, size: 11, align: "right" },
    );
    rules.push({ y: y + 8, from: left, to: right });
    y += 24;
  }
  const total = money(invoice.amountCents, invoice.currency);
  texts.push(
    { text: "Total", x: left, y, size: 12, bold: true },
    { text: total, x: right, y, size: 12, bold: true, align: "right" },
  );
  if (invoice.tax) {
    y += 18;
    const amount = money(invoice.tax.amountCents, invoice.currency);
    texts.push(
      { text: taxText(invoice.tax), x: left, y, size: 10 },
      { text: amount, x: right, y, size: 10, align: "right" },
    );
  }
  y += 40;
  for (const text of linesOf([isTest && "Test payments: no money moves.", seller?.note]).slice(0, maxNotes)) {
    texts.push({ text: fitting(text, 10, right - left), x: left, y, size: 10 });
    y += 14;
  }
  return writePdf(`Invoice ${invoice.number ?? invoice.id}`, texts, rules);
}

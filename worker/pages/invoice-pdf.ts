import type { Invoice } from "../../protocol/api/invoices.ts";
import { textWidth, writePdf, type PdfRule, type PdfText } from "../domain/pdf.ts";
import { day, money } from "./money.ts";

const [left, right] = [60, 535];
/** The maximum that fits on one page; our invoices are far shorter. */
const maxLines = 25;

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
  const texts: PdfText[] = [
    { text: "Berth", x: left, y: 80, size: 12, bold: true },
    { text: "Invoice", x: left, y: 120, size: 24, bold: true },
  ];
  const facts = [
    ["Number", invoice.id],
    ["Date", day(invoice.createdAt)],
    ["Due", day(invoice.dueAt)],
    ["State", stateOf(invoice)],
  ] as const;
  let y = 155;
  for (const [name, value] of facts) {
    texts.push({ text: name, x: left, y, size: 10 }, { text: value, x: left + 70, y, size: 10 });
    y += 16;
  }
  y += 24;
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
  if (isTest) texts.push({ text: "Test payments: no money moves.", x: left, y: y + 40, size: 10 });
  return writePdf(`Invoice ${invoice.id}`, texts, rules);
}

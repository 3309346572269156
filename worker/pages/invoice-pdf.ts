import type { Invoice } from "../../protocol/api/invoices.ts";
import { textWidth, writePdf, type PdfRule, type PdfText } from "../domain/pdf.ts";
import { day } from "../../protocol/days.ts";
import { money, taxText } from "./money.ts";

const [left, right] = [60, 535];
/** Where the page ends. */
const bottom = 810;
/** Seller and buyer, in the right half. */
const columnAt = 320;
const columnWidth = right - columnAt;

const linesOf = (texts: readonly (string | false | null | undefined)[]): string[] =>
  texts.flatMap((text) => (text ? text.split(/\r?\n/) : []));

/** The lines of a text, broken between words; a word that is wider than a line is broken anywhere. */
function wrapped(text: string, size: number, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (textWidth(longer, size) <= width) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = "";
    for (const character of word) {
      if (line !== "" && textWidth(line + character, size) > width) {
        lines.push(line);
        line = "";
      }
      line += character;
    }
  }
  return [...lines, line];
}

function stateOf({ status, paidAt }: Invoice): string {
  if (paidAt === null) return status;
  return status === "paid" ? `paid on ${day(paidAt)}` : `${status}, was paid on ${day(paidAt)}`;
}

/** The invoice as a single printable page. */
export function invoicePdf(invoice: Invoice, isTest: boolean): string {
  const { brandName, seller, buyer } = invoice.parties ?? { brandName: "Berth", seller: null, buyer: null };
  const sold = linesOf([
    seller?.name,
    seller?.address,
    seller?.vatId && `VAT ${seller.vatId}`,
    seller?.email,
  ]);
  const sellers = sold.flatMap((text) => wrapped(text, 9, columnWidth));
  const bought = linesOf([
    buyer && "Billed to",
    buyer?.name,
    buyer?.address,
    buyer?.country,
    buyer?.vatId && `VAT ${buyer.vatId}`,
  ]);
  const buyers = bought.flatMap((text) => wrapped(text, 10, columnWidth));
  const buyersAt = Math.max(215, 100 + sellers.length * 12);
  const texts: PdfText[] = [
    ...wrapped(brandName, 12, columnAt - left - 20).map((text, at) => ({
      text,
      x: left,
      y: 80 + at * 14,
      size: 12,
      bold: true,
    })),
    { text: "Invoice", x: left, y: 120, size: 24, bold: true },
    ...sellers.map((text, at) => ({ text, x: columnAt, y: 80 + at * 12, size: 9 })),
    ...buyers.map((text, at) => ({ text, x: columnAt, y: buyersAt + at * 13, size: 10, bold: at === 0 })),
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
  y = Math.max(350, buyersAt + buyers.length * 13 + 18);
  const rules: PdfRule[] = [{ y: y - 16, from: left, to: right }];
  for (const line of invoice.lines) {
    const amount = money(line.amountCents, invoice.currency);
    texts.push({ text: amount, x: right, y, size: 11, align: "right" });
    for (const [at, text] of wrapped(line.description, 11, right - left - 110).entries()) {
      if (at > 0) y += 14;
      texts.push({ text, x: left, y, size: 11 });
    }
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
  const notes = linesOf([isTest && "Test payments: no money moves.", seller?.note]);
  for (const text of notes.flatMap((note) => wrapped(note, 10, right - left))) {
    texts.push({ text, x: left, y, size: 10 });
    y += 14;
  }
  // What would pass the end of the page is printed smaller and closer.
  const factor = Math.min(1, bottom / Math.max(...texts.map((text) => text.y)));
  return writePdf(
    `Invoice ${invoice.number ?? invoice.id}`,
    texts.map((text) => ({ ...text, y: text.y * factor, size: text.size * factor })),
    rules.map((rule) => ({ ...rule, y: rule.y * factor })),
  );
}

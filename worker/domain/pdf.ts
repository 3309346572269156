/** One line of text on the page; `x` from the left and `y` from the top, in points. Right-aligned text ends at `x`. */
export type PdfText = {
  text: string;
  x: number;
  y: number;
  size: number;
  bold?: boolean;
  align?: "left" | "right";
};
export type PdfRule = { y: number; from: number; to: number };

/** A4, in points. */
const pageSize = { width: 595, height: 842 };

/**
 * Widths of the ASCII characters from the space on, in thousandths of the font size, from Helvetica's metrics; digits
 * have the same width in bold.
 */
const widths =
  "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
    .split(" ")
    .map(Number);

export const textWidth = (text: string, size: number): number =>
  (winAnsi(text).reduce((sum, code) => sum + (widths[code - 32] ?? 556), 0) * size) / 1000;

/** What WinAnsiEncoding has from 128 to 159, where Latin-1 has control characters. */
const between = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";

/** Bytes in WinAnsiEncoding; characters it lacks become question marks. */
const winAnsi = (text: string): number[] =>
  Array.from(text.normalize("NFC"), (character) => {
    const code = character.codePointAt(0) ?? 63;
    if ((code >= 32 && code < 127) || (code >= 160 && code < 256)) return code;
    return between.includes(character) ? 128 + between.indexOf(character) : 63;
  });

/** Hexadecimal strings need no escaping. */
const hex = (text: string): string =>
  `<${winAnsi(text)
    .map((code) => code.toString(16).padStart(2, "0"))
    .join("")}>`;

const font = (name: string) =>
  `<< /Type /Font /Subtype /Type1 /BaseFont /${name} /Encoding /WinAnsiEncoding >>`;

/** A one-page PDF 1.4 file in Helvetica (ISO 32000-1, 7.5). The output is ASCII and deterministic. */
export function writePdf(title: string, texts: readonly PdfText[], rules: readonly PdfRule[]): string {
  const content = [
    ...rules.map(({ y, from, to }) => `${from} ${pageSize.height - y} m ${to} ${pageSize.height - y} l S`),
    ...texts.map(({ text, x, y, size, bold, align }) => {
      const left = align === "right" ? x - textWidth(text, size) : x;
      return `BT /${bold ? "B" : "R"} ${size} Tf ${left.toFixed(2)} ${pageSize.height - y} Td ${hex(text)} Tj ET`;
    }),
  ].join("\n");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${pageSize.width} ${pageSize.height}] /Contents 4 0 R /Resources << /Font << /R 5 0 R /B 6 0 R >> >> >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    font("Helvetica"),
    font("Helvetica-Bold"),
    `<< /Title ${hex(title)} >>`,
  ];
  let file = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const start = file.length;
  const entries = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const size = objects.length + 1;
  return `${file}xref\n0 ${size}\n0000000000 65535 f \n${entries}trailer\n<< /Size ${size} /Root 1 0 R /Info 7 0 R >>\nstartxref\n${start}\n%%EOF\n`;
}

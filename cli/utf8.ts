import { readFileSync } from "node:fs";
import { usage } from "./failure.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Bytes as text, without a byte order mark. Other encodings are refused: read as UTF-8 they would be another text. @param source
 * begins the message @throws Failure (usage)
 */
export function textOf(bytes: Buffer, source: string): string {
  try {
    const text = decoder.decode(bytes);
    // No text has it; every second byte of most texts in UTF-16 is one.
    if (!text.includes("\0")) return text;
  } catch {
    // The line is looked for below.
  }
  throw usage(
    `${source} is not UTF-8 text: see line ${firstOther(bytes)}.`,
    "Save it as UTF-8, or convert it, such as with `iconv -f LATIN1 -t UTF-8`. Nothing was changed.",
  );
}

/** @throws Failure (usage) if the file cannot be read, or is not UTF-8 */
export function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw usage(code === "ENOENT" ? `There is no file ${file}.` : `${file} cannot be read: ${message}.`);
  }
  return textOf(bytes, file);
}

/** The number of the first line that is not UTF-8. */
function firstOther(bytes: Buffer): number {
  for (let line = 1, from = 0; ; line++) {
    const end = bytes.indexOf("\n", from);
    const part = bytes.subarray(from, end < 0 ? undefined : end);
    if (end < 0 || part.includes(0)) return line;
    try {
      decoder.decode(part);
    } catch {
      return line;
    }
    from = end + 1;
  }
}

import { cutNote, withoutMiddle } from "./token-estimate.ts";

/** Limit per tool result in a prompt, in characters. */
const maxResultLength = 6000;

/** Masks passwords in addresses, and Berth's own tokens, wherever they come from: a log, a row, a commit message. */
const maskedText = (text: string): string =>
  text
    // Addresses of Redis often have no user.
    .replaceAll(/(:\/\/[^\s:@/"]{0,200}):[^\s@/"]{1,400}@/g, "$1:…@")
    // After a line break, which is a letter in JSON, as well.
    .replaceAll(/(?<=\b|\\[nrt])(sk|whk|hst)_[0-9A-Za-z]{8,}/g, "$1_…");

/** The same as a value: what is masked holds no quotes, so the text stays valid JSON. */
export const masked = (result: unknown): unknown => JSON.parse(maskedText(JSON.stringify(result) ?? "null"));

/**
 * A tool's result for the model: third-party data, marked as such, cut to a budget and without secrets. Only the
 * person's messages are instructions, whatever the data says.
 */
export function untrusted(result: unknown): string {
  const text = maskedText(JSON.stringify(result) ?? "null");
  const cut = text.length > maxResultLength;
  return JSON.stringify({
    untrusted_data: cut ? withoutMiddle(text, maxResultLength) : text,
    ...(cut && { note: cutNote(maxResultLength, text.length) }),
  });
}

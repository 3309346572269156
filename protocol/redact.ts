/** Shorter values would mask ordinary words. */
const minLength = 4;
/** The base64 form of fewer bytes could occur in any digest. */
const minInsideLength = 6;
/** Replaces a secret of any length. */
const mask = "•••";

/** A multi-line secret is rarely printed one line at a time; the longest lines reveal most. */
const maxLinesOfOne = 200;
const maxLines = 1000;
/** Forms are identified by a prefix of this length, or a shorter one if there are thousands, and masked in full. */
const maxHeadLength = 64;
const minHeadLength = 16;
const headsLength = 200_000;

/**
 * Masks known secret values in the forms in which they occur in logs: verbatim, base64-encoded (also inside a longer
 * text, as in an `Authorization` header), URL-encoded and JSON-escaped. Overlapping matches are masked in full. The
 * cost is bounded by the text's length, whatever values a tenant chooses.
 */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(valuesOf(secrets).flatMap(formsOf))];
  if (forms.length === 0) return (text) => text;
  const lengthAt = lookup(forms);
  return (text) => {
    let masked = "";
    let end = -1;
    for (let at = 0; at < text.length; at++) {
      const length = lengthAt(text, at);
      if (length === 0) continue;
      if (at > end) masked += text.slice(Math.max(end, 0), at) + mask;
      end = Math.max(end, at + length);
    }
    return end < 0 ? text : masked + text.slice(end);
  };
}

/** Each secret, and the longest lines of multi-line secrets. */
function valuesOf(secrets: readonly string[]): string[] {
  const lines = secrets.flatMap((secret) => {
    const parts = secret.split(/\r?\n/);
    return parts.length === 1 ? [] : longest(parts, maxLinesOfOne);
  });
  return [...secrets, ...longest(lines, maxLines)].filter((value) => value.length >= minLength);
}

const longest = (lines: readonly string[], count: number): string[] =>
  lines.length <= count ? [...lines] : lines.toSorted((a, b) => b.length - a.length).slice(0, count);

/** Finds the length of the longest form at a position of a text, with a trie over the forms' prefixes. */
function lookup(forms: readonly string[]): (text: string, at: number) => number {
  const headLength = Math.max(minHeadLength, Math.min(maxHeadLength, Math.floor(headsLength / forms.length)));
  const next = new Map<number, number>();
  const lengths = [0];
  const firsts = new Uint8Array(65_536);
  for (const form of forms) {
    let node = 0;
    firsts[form.charCodeAt(0)] = 1;
    for (let index = 0; index < Math.min(form.length, headLength); index++) {
      const step = node * 65_536 + form.charCodeAt(index);
      let following = next.get(step);
      if (following === undefined) next.set(step, (following = lengths.push(0) - 1));
      node = following;
    }
    lengths[node] = Math.max(lengths[node] ?? 0, form.length);
  }
  return (text, at) => {
    if (firsts[text.charCodeAt(at)] === 0) return 0;
    let found = 0;
    let node: number | undefined = 0;
    for (let index = at; index < text.length; index++) {
      node = next.get(node * 65_536 + text.charCodeAt(index));
      if (node === undefined) break;
      found = lengths[node] || found;
    }
    return found;
  };
}

function formsOf(value: string): string[] {
  // An unpaired surrogate cannot be encoded.
  const encoded = encodeURIComponent(value.toWellFormed());
  return [
    value,
    ...base64Forms(Buffer.from(value)),
    encoded,
    encoded.replaceAll("%20", "+"),
    JSON.stringify(value).slice(1, -1),
  ];
}

/** Base64 and base64url forms: of the value alone, and the part that is constant inside a longer text. */
function base64Forms(value: Buffer): string[] {
  const alone = value.toString("base64");
  const inside = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), value]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + value.length) * 8) / 6));
  });
  const forms = [alone, alone.replace(/=+$/, ""), ...inside.filter((form) => form.length >= minInsideLength)];
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

// Colours are kept; cursor movements, titles and other control characters could change what a reader sees.
/* oxlint-disable no-control-regex -- control characters are what this is about */
const escapes =
  /\u001b\[[0-9;]*m|\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** The text without escape sequences that move the terminal's cursor. */
export const printable = (text: string): string =>
  text.replace(escapes, (found) => (/^\u001b\[[0-9;]*m$/.test(found) ? found : ""));

/** Also removes colours, for use outside of logs. */
export const plain = (text: string): string => text.replace(escapes, "");

const turns = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text of others that stands in a sentence: also without what turns the direction of the sentence's rest. */
export const quotable = (text: string): string => plain(text).replace(turns, "");

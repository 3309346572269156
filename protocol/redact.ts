/** Shorter values would mask ordinary words. */
const minLength = 4;
/** Of a few bytes, base64 could be part of any digest. */
const minInsideLength = 6;
/** Stands for a secret, whatever its length. */
const mask = "•••";

/**
 * Masks known secret values, in the forms in which they come up in logs: as they are, in base64 (also inside a longer
 * text, as in an `Authorization` header), URL-encoded and JSON-escaped. Where values overlap, all they cover goes.
 */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.flatMap(formsOf))];
  return (text) => {
    const found: [start: number, end: number][] = [];
    for (const form of forms)
      for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1))
        found.push([at, at + form.length]);
    if (found.length === 0) return text;
    let masked = "";
    let end = 0;
    for (const [from, to] of found.sort(([a], [b]) => a - b)) {
      if (from > end || end === 0) masked += text.slice(end, from) + mask;
      end = Math.max(end, to);
    }
    return masked + text.slice(end);
  };
}

function formsOf(secret: string): string[] {
  const lines = [secret, ...secret.split(/\r?\n/)].filter((line) => line.length >= minLength);
  return lines.flatMap((value) => [
    value,
    ...base64Forms(Buffer.from(value)),
    encodeURIComponent(value),
    encodeURIComponent(value).replaceAll("%20", "+"),
    JSON.stringify(value).slice(1, -1),
  ]);
}

/** In base64 and base64url: alone, and what is the same of it wherever it stands in a longer text. */
function base64Forms(value: Buffer): string[] {
  const alone = value.toString("base64");
  const inside = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), value]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + value.length) * 8) / 6));
  });
  const forms = [alone, alone.replace(/=+$/, ""), ...inside.filter((form) => form.length >= minInsideLength)];
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

// Colours stay; cursor movements, titles and other control characters could rewrite what a reader sees.
/* oxlint-disable no-control-regex -- control characters are what this is about */
const escapes =
  /\u001b\[[0-9;]*m|\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** The text without anything that moves a terminal's cursor. */
export const printable = (text: string): string =>
  text.replace(escapes, (found) => (/^\u001b\[[0-9;]*m$/.test(found) ? found : ""));

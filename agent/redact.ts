/** Shorter values would mask ordinary words. */
const minLength = 4;

/**
 * Masks known secret values, in the forms in which they come up in logs: as they are, in base64, URL-encoded and
 * JSON-escaped. Longest first, so that a value that contains another leaves nothing of it.
 */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .filter((value) => value.length >= minLength)
    .flatMap((value) => [
      value,
      ...value.split(/\r?\n/).filter((line) => line.length >= minLength),
      Buffer.from(value).toString("base64"),
      Buffer.from(value).toString("base64").replace(/=+$/, ""),
      Buffer.from(value).toString("base64url"),
      encodeURIComponent(value),
      JSON.stringify(value).slice(1, -1),
    ]);
  const unique = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (text) => unique.reduce((masked, form) => masked.replaceAll(form, "•••"), text);
}

// Colours stay; cursor movements, titles and other control characters could rewrite what a reader sees.
/* oxlint-disable no-control-regex -- control characters are what this is about */
const escapes =
  /\u001b\[[0-9;]*m|\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)?|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** The text without anything that moves a terminal's cursor. */
export const printable = (text: string): string =>
  text.replace(escapes, (found) => (/^\u001b\[[0-9;]*m$/.test(found) ? found : ""));

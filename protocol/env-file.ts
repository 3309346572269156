import { jsonIn } from "./json.ts";

type EnvLine = { key: string; value: string };
/** `line`: counted from 1. */
type EnvFileProblem = { line: number; text: string };

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;
const nameProblem = "write NAME=value, with letters, digits and _ in the name";
const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };
/** An apostrophe in single quotes as shells have it, and what writes for them: 'it'\''s', 'it'"'"'s'. */
const apostrophe = /'(?:\\'|"'")'/g;

/**
 * The variables of a file in the form that dotenv libraries read: `NAME=value`, an optional `export`, comments that begin with #,
 * values in single, double or back quotes that may span lines, and \n, \r, \t, \", \\, \$, \` and \! in double quotes. The last
 * of equal names counts. Also of a JSON object of names and values, as other platforms export it.
 */
export function parseEnvFile(text: string): { variables: EnvLine[]; problems: EnvFileProblem[] } {
  if (/^\s*\{/.test(text)) return parseJson(text);
  const whole = text.replaceAll(/\r\n?/g, "\n");
  const lines = whole.split("\n");
  const variables = new Map<string, string>();
  const problems: EnvFileProblem[] = [];
  // `next`: where the next line begins in the whole, which is read once: a stranger may have written it.
  for (let at = 0, next = 0; at < lines.length; at++) {
    next += (lines[at]?.length ?? 0) + 1;
    const line = lines[at]?.trimStart() ?? "";
    if (line === "" || line.startsWith("#")) continue;
    const [, key = "", rest = ""] = /^(?:export\s+)?([^=\s]+)\s*=\s*([^]*)/.exec(line) ?? [];
    if (!name.test(key)) {
      problems.push({ line: at + 1, text: nameProblem });
      continue;
    }
    const quote = /^["'`]/.exec(rest)?.[0];
    if (quote === undefined) {
      variables.set(key, rest.replace(/\s#[^]*$/, "").trimEnd());
      continue;
    }
    const from = next - rest.length;
    const end = endOf(whole, quote, from);
    if (end < 0) {
      problems.push({ line: at + 1, text: `the ${quote} of ${key} is never closed` });
      break;
    }
    const inner = whole.slice(from, end);
    variables.set(
      key,
      quote === '"'
        ? inner.replaceAll(/\\([nrt"\\$`!])/g, (_, letter: string) => escapes[letter] ?? letter)
        : quote === "'"
          ? inner.replaceAll(apostrophe, "'")
          : inner,
    );
    while (next <= end) next += (lines[++at]?.length ?? 0) + 1;
    if (!/^;?\s*(?:#|$)/.test(whole.slice(end + 1, next - 1)))
      problems.push({
        line: at + 1,
        text: `more follows the closing ${quote} of ${key}: write a quote that is part of the value in quotes of another kind`,
      });
  }
  return { variables: [...variables].map(([key, value]) => ({ key, value })), problems };
}

function parseJson(text: string): ReturnType<typeof parseEnvFile> {
  const found = jsonIn(text);
  if (found === undefined)
    return {
      variables: [],
      problems: [{ line: 1, text: "this begins like JSON and is not: copy all of it" }],
    };
  const variables: EnvLine[] = [];
  const problems: EnvFileProblem[] = [];
  for (const [key, value] of Object.entries(found as object)) {
    if (!name.test(key)) problems.push({ line: 1, text: nameProblem });
    else if (typeof value === "object") problems.push({ line: 1, text: `the value of ${key} is no text` });
    else variables.push({ key, value: String(value) });
  }
  return { variables, problems };
}

/** Where a quoted value that begins at `from` ends; -1: nowhere. In double quotes a backslash protects what follows. */
function endOf(text: string, quote: string, from: number): number {
  const within = new RegExp(apostrophe, "y");
  for (let at = from; at < text.length; at++) {
    if (quote === '"' && text[at] === "\\") at++;
    else if (text[at] === quote) {
      within.lastIndex = at;
      if (quote !== "'" || !within.test(text)) return at;
      at = within.lastIndex - 1;
    }
  }
  return -1;
}

const shownEscapes = Object.fromEntries(
  Object.entries(escapes).map(([letter, character]) => [character, `\\${letter}`]),
);

/**
 * One variable as such a file has it; `parseEnvFile` reads the same value. In single quotes where it can be, as some readers know no
 * \" (`node --env-file`).
 */
export const envLine = (key: string, value: string): string =>
  /^[\w.:/@%+,=-]*$/.test(value)
    ? `${key}=${value}`
    : /^[^'\n\r]*["\\][^'\n\r]*$/.test(value)
      ? `${key}='${value}'`
      : `${key}="${value.replaceAll(/[\n\r\t"\\]/g, (letter) => shownEscapes[letter] ?? letter)}"`;

/* oxlint-disable no-control-regex -- by their ranges: \p{Cc} has the line feed too */
import { stripVTControlCharacters, styleText } from "node:util";
import type { Answer, Answers, OperationId } from "../client/index.ts";

/** How this run prints. Set once, before the command runs. */
export const output = { json: false, quiet: false, color: false, isInteractive: false };

/** What the streams, the environment and the options allow (https://no-color.org). */
export function prepareOutput(options: { json?: true; quiet?: true; color: boolean }): void {
  const { env, stdout, stderr, stdin } = process;
  const isForced =
    env["FORCE_COLOR"] !== undefined && env["FORCE_COLOR"] !== "0" && env["FORCE_COLOR"] !== "";
  const isWanted = options.color && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  output.json = options.json ?? false;
  output.quiet = options.quiet ?? false;
  output.color = isWanted && !output.json && (isForced || (stdout.isTTY && stderr.isTTY));
  output.isInteractive = stdin.isTTY && stderr.isTTY && !env["CI"];
}

type Style = Parameters<typeof styleText>[0];
export const styled = (style: Style, text: string): string => (output.color ? styleText(style, text) : text);
export const bold = (text: string): string => styled("bold", text);
export const dim = (text: string): string => styled("dim", text);
export const link = (url: string): string => styled(["cyan", "underline"], url);

/**
 * Text of others for a terminal: without escape sequences and control characters, which could rewrite what it shows.
 */
export const safe = (text: string): string =>
  stripVTControlCharacters(text).replaceAll(
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    "",
  );

/** Quotes an argument for `sh`. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Data: to standard output. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`);
/** Progress and remarks: to standard error, so that standard output stays data. */
export function say(text: string): void {
  if (!output.quiet) process.stderr.write(`${text}\n`);
}

/**
 * Prints the answer of an operation: with --json as it came, which is the schema of the operation in the OpenAPI
 * document, otherwise for people.
 */
export function show<Id extends OperationId, Given>(
  _: Id,
  answer: Answer<Id, Given>,
  human: (answer: Answer<Id, Given>) => string,
): void {
  if (output.json) print(JSON.stringify(answer, null, process.stdout.isTTY ? 2 : 0));
  else {
    const text = human(answer);
    if (text !== "") print(text);
  }
}

/** Prints a value that no operation answers; its fields are in protocol/cli.ts and docs/manual/cli.md. */
export function showValue<Name extends keyof Answers>(
  _: Name,
  value: Answers[Name],
  human: (value: Answers[Name]) => string,
): void {
  if (output.json) print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
  else {
    const text = human(value);
    if (text !== "") print(text);
  }
}

const width = (text: string): number => {
  let columns = 0;
  // Wide characters of East Asian scripts and pictures take two columns.
  for (const character of stripVTControlCharacters(text))
    columns +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        character,
      )
        ? 2
        : 1;
  return columns;
};
/** The beginning of a text that fits into so many columns, with … where it goes on. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = "";
  let used = 1;
  for (const character of text) {
    used += width(character);
    if (used > columns) break;
    kept += character;
  }
  return `${kept}…`;
}
const pad = (text: string, to: number): string => text + " ".repeat(Math.max(0, to - width(text)));

/**
 * Columns with a heading each, as pairs where headings may repeat or be numbers; cells are made safe unless they are
 * already styled. In a terminal that is too narrow, the last columns go below the first, each with its name before it,
 * so that nothing is cut or broken.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: Record<string, (row: Row) => string> | (readonly [title: string, (row: Row) => string])[],
  none: string,
): string {
  if (rows.length === 0) return dim(none);
  const entries = Array.isArray(columns) ? columns : Object.entries(columns);
  const titles = entries.map(([title]) => title);
  const cells = rows.map((row) => entries.map(([, textOf]) => textOf(row).replaceAll(/\r?\n/g, "↵")));
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((row) => width(row[index] ?? ""))),
  );
  const limit = columnsHere();
  let beside = 1;
  for (let used = widths[0] ?? 0; beside < titles.length; beside++) {
    used += 2 + (widths[beside] ?? 0);
    if (used > limit) break;
  }
  const line = (texts: string[]) =>
    texts
      .slice(0, beside)
      .map((text, at) => (at === beside - 1 ? text : pad(text, widths[at] ?? 0)))
      .join("  ");
  const below = (row: string[]) =>
    flowed(
      row
        .map((text, at) => (text === "" ? "" : `${dim(titles[at] ?? "")} ${text}`))
        .slice(beside)
        .filter((text) => text !== ""),
      limit - 2,
    ).map((text) => `  ${text}`);
  return [
    styled(["bold", "dim"], line(titles.map((title) => title.toUpperCase()))),
    ...cells.flatMap((row) => [line(row), ...below(row)]),
  ].join("\n");
}

const columnsHere = (): number => (process.stdout.isTTY ? process.stdout.columns : Infinity);

/** Texts side by side, as many on a line as fit. */
function flowed(texts: readonly string[], limit: number, between = "  "): string[] {
  const lines: string[] = [];
  for (const text of texts) {
    const longer = `${lines.at(-1)}${between}${text}`;
    if (lines.length > 0 && width(longer) <= limit) lines[lines.length - 1] = longer;
    else lines.push(text);
  }
  return lines;
}

/** A page of a list, and how to see the next. */
export const paginated = (text: string, nextCursor: string | number | null | undefined): string =>
  nextCursor === null || nextCursor === undefined
    ? text
    : `${text}\n${dim(`More: --cursor ${safe(String(nextCursor))}`)}`;

/** Names and values below each other; null and undefined are left out. Long values go on below where they began. */
export function fields(values: Record<string, string | null | undefined>): string {
  const shown = Object.entries(values).filter(
    (pair): pair is [string, string] => pair[1] != null && pair[1] !== "",
  );
  const widest = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value]) => {
      const lines = value
        .split("\n")
        .flatMap((line) => flowed(line.split(" "), columnsHere() - widest - 2, " "));
      return `${dim(name.padEnd(widest))}  ${lines.join(`\n${" ".repeat(widest + 2)}`)}`;
    })
    .join("\n");
}

const good = new Set(["RUNNING", "LIVE", "SUCCEEDED", "VERIFIED", "paid", "verified", "active", "ACTIVE"]);
const bad = new Set(["FAILED", "SUSPENDED", "CANCELLED", "void", "REMOVED"]);
const calm = new Set(["STOPPED", "SUPERSEDED", "DELETING"]);

/** A status word in its colour. */
export const status = (word: string): string =>
  styled(good.has(word) ? "green" : bad.has(word) ? "red" : calm.has(word) ? "dim" : "yellow", safe(word));

/** null: no status tells that it is done. */
const effects = {
  start: ["RUNNING", "started"],
  stop: ["STOPPED", "stopped"],
  restart: [null, "restarted"],
  cancel: ["CANCELLED", "cancelled"],
} as const;

/** What an action has come to: a host takes it up after it is answered. */
export function acted(name: string, word: string, action: keyof typeof effects): string {
  const [target, participle] = effects[action];
  return word === target ? `${safe(name)} is ${status(word)}.` : `${safe(name)} is being ${participle}.`;
}

/** So many seconds for people, in the largest unit. */
export const roughly = (seconds: number): string =>
  seconds < 60
    ? `${seconds} s`
    : seconds < 3600
      ? `${Math.floor(seconds / 60)} min`
      : seconds < 86_400
        ? `${Math.floor(seconds / 3600)} h`
        : `${Math.floor(seconds / 86_400)} d`;

/** A time for people: how long ago or until, and the day beyond a month. */
export function when(time: string | null): string {
  if (time === null) return dim("–");
  const seconds = Math.round((Date.now() - Date.parse(time)) / 1000);
  if (Math.abs(seconds) > 31 * 86_400) return safe(time.slice(0, 10));
  const text = roughly(Math.abs(seconds));
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}

export const money = (cents: number, currency: string): string => {
  const amount = (cents / 100).toFixed(2);
  return currency.toLowerCase() === "usd" ? `$${amount}` : `${amount} ${safe(currency.toUpperCase())}`;
};
export const duration = (ms: number): string =>
  ms < 1000
    ? `${Math.round(ms)} ms`
    : ms < 60_000
      ? `${(ms / 1000).toFixed(1)} s`
      : `${Math.floor(Math.round(ms / 1000) / 60)} min ${Math.round(ms / 1000) % 60} s`;
export const size = (megabytes: number | null): string =>
  megabytes === null
    ? dim("–")
    : megabytes > 0 && megabytes < 0.1
      ? `${Math.ceil(megabytes * 1024)} KB`
      : megabytes < 1024
        ? `${Math.round(megabytes * 10) / 10} MB`
        : `${(megabytes / 1024).toFixed(1)} GB`;

/** `clear`: before something else is written. */
type Spinner = { say(text: string): void; clear(): void; stop(): void };

/** What is being waited for, on a line that goes away; without a terminal, nothing. */
export function spin(text: string): Spinner {
  const { stderr } = process;
  if (!stderr.isTTY || output.quiet || process.env["CI"] || process.env["TERM"] === "dumb")
    return { say: () => undefined, clear: () => undefined, stop: () => undefined };
  let shown = text;
  let step = 0;
  const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
  const draw = () => {
    const line = `${frames[step++ % frames.length]} ${shown}`;
    stderr.write(`\r\u001b[2K${styled("cyan", line.slice(0, stderr.columns - 1))}`);
  };
  draw();
  const timer = setInterval(draw, 100);
  return {
    say: (next) => {
      shown = next;
    },
    clear: () => void stderr.write("\r\u001b[2K"),
    stop() {
      clearInterval(timer);
      stderr.write("\r\u001b[2K");
    },
  };
}

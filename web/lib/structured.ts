/** How grave a line says it is, from the least. */
const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];

const levelWords: Readonly<Record<string, Level>> = {
  trace: "debug",
  debug: "debug",
  info: "info",
  notice: "info",
  warn: "warn",
  warning: "warn",
  error: "error",
  err: "error",
  fatal: "error",
  critical: "error",
  panic: "error",
};
const colours: Record<Level, number> = { debug: 90, info: 34, warn: 33, error: 31 };
const messages = ["msg", "message", "event"];
/** Beside the time of the line itself they say nothing. */
const times = new Set(["time", "timestamp", "ts", "@timestamp"]);

/** A word, or a number as pino writes it. */
function levelIn(value: unknown): Level | null {
  if (typeof value === "number")
    return value >= 50 ? "error" : value >= 40 ? "warn" : value >= 30 ? "info" : "debug";
  return typeof value === "string" ? (levelWords[value.toLowerCase()] ?? null) : null;
}

const worded =
  /^(?:\S+ ){0,3}?\[?(trace|debug|info|notice|warn|warning|error|err|fatal|critical|panic)\b\]?:?/i;

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** What a line of a log is: its level if it says one, and a line of JSON as people read it: level, message, name=value. */
export function structured(text: string): { level: Level | null; readable: string | null } {
  if (!text.startsWith("{") || !text.endsWith("}")) {
    const [, word = ""] = worded.exec(text.slice(0, 200)) ?? [];
    return { level: levelIn(word), readable: null };
  }
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { level: null, readable: null };
  }
  const named = fields["level"] ?? fields["severity"] ?? fields["lvl"];
  const level = levelIn(named);
  const message = messages.find((name) => typeof fields[name] === "string");
  if (level === null && message === undefined) return { level, readable: null };
  const rest = Object.entries(fields)
    .filter(([name]) => name !== message && !times.has(name))
    .filter(([name]) => level === null || !["level", "severity", "lvl"].includes(name))
    .map(([name, value]) => `\u001b[2m${name}=\u001b[22m${shown(value)}`);
  const head = level === null ? [] : [`\u001b[${colours[level]}m${level.padEnd(5)}\u001b[39m`];
  return {
    level,
    readable: [...head, ...(message === undefined ? [] : [shown(fields[message])]), ...rest].join(" "),
  };
}

export const isAtLeast = (level: Level | null, least: Level): boolean =>
  level !== null && levels.indexOf(level) >= levels.indexOf(least);

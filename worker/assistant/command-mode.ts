import * as z from "zod";
import { toolGroups, tools, type ToolName } from "../../protocol/api/tools.ts";
import { isTool, specOf } from "./run-tool.ts";

/** A tool called by name, a tool for the site that the message is about, or a text to answer with. */
type Command =
  | { tool: ToolName; input: Record<string, unknown> }
  | { tool: ToolName; of: "site" }
  | { answer: string };

/** What is also understood in words: what only reads, unless they are about a change. */
const readings: [words: RegExp, command: Command][] = [
  [/\bweb-?hooks?\b/i, { tool: "get_deploy_webhook", of: "site" }],
  [/\binvoices?\b/i, { tool: "list_invoices", input: { status: "unpaid" } }],
  [/\bstatus\b/i, { tool: "get_site", of: "site" }],
];
const changes = /\b(?:cancel|change|create|delete|pay|remove|renew|replace|reset|revoke|rotate|void)\b/i;

const names = Object.keys(tools) as ToolName[];

const help = (): string =>
  [
    'No model is configured here, so tools are called by name: tool key=value key="a longer value"',
    "A site's status and deploy webhook, and unpaid invoices, may also be asked for in words.",
    "Values may be JSON. “help <group>” or “help <tool>” shows details; “yes” confirms a pending action.",
    ...Object.entries(toolGroups).map(
      ([group, what]) =>
        `\n${group}: ${what}\n  ${names.filter((name) => tools[name].group === group).join(", ")}`,
    ),
  ].join("\n");

const described = (some: readonly ToolName[]): string =>
  some.map((name) => `${name}: ${tools[name].summary}`).join("\n");

function helpOn(topic: string): string {
  if (isTool(topic)) {
    const schema = z.toJSONSchema(specOf(topic).input, { io: "input", unrepresentable: "any" });
    const { properties = {}, required = [] } = schema as {
      properties?: Record<string, { description?: string }>;
      required?: string[];
    };
    const lines = Object.entries(properties).map(
      ([name, { description }]) =>
        `  ${name}${required.includes(name) ? "" : " (optional)"}${description ? `: ${description}` : ""}`,
    );
    return [`${topic}: ${specOf(topic).summary}`, ...lines].join("\n");
  }
  const group = names.filter((name) => tools[name].group === topic);
  return group.length > 0 ? described(group) : help();
}

/** Where the text, list or object of JSON that begins there ends; null: nowhere. */
function endOfJson(text: string, from: number): number | null {
  let depth = 0;
  let isInText = false;
  for (let at = from; at < text.length; at++) {
    const one = text[at] ?? "";
    if (isInText && one === "\\") at++;
    else if (one === '"') isInText = !isInText;
    else if (!isInText && "[{".includes(one)) depth++;
    else if (!isInText && "]}".includes(one)) depth--;
    if (depth === 0 && !isInText) return at + 1;
  }
  return null;
}

/** Texts as people paste them: a line break, or a backslash that escapes nothing, is itself. */
const escaped = (quoted: string): string =>
  quoted.replaceAll(/\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})|[\\\p{Cc}]/gu, (one) =>
    one.length > 1 ? one : JSON.stringify(one).slice(1, -1),
  );

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text.replaceAll(/"(?:[^"\\]|\\[^])*"/g, escaped)) as unknown;
  } catch {
    return text;
  }
}

/** The values of `key=value` pairs as they are written, in one pass; null if the text contains anything else. */
function pairsIn(text: string): Record<string, string> | null {
  const found: Record<string, string> = {};
  const key = /\s*([\w.-]+)=/y;
  const end = text.trimEnd().length;
  for (let at = 0; at < end;) {
    key.lastIndex = at;
    const name = key.exec(text)?.[1];
    if (name === undefined) return null;
    const from = key.lastIndex;
    const until = /["[{]/.test(text[from] ?? "")
      ? endOfJson(text, from)
      : text.slice(from).search(/\s|$/) + from;
    // A value and what follows it are apart.
    if (until === null || !/^\s?$/.test(text[until] ?? "")) return null;
    found[name] = text.slice(from, until);
    at = until;
  }
  return found;
}

/** What is written without quotes is a text where its JSON is nothing that the tool takes: a status is "404" there. */
function inputOf(tool: ToolName, written: Record<string, string>): Record<string, unknown> {
  const isRefused = (input: object, name: string) =>
    specOf(tool)
      .input.safeParse(input)
      .error?.issues.some(({ path }) => path[0] === name) === true;
  let input: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(written)) input[name] = valueOf(text);
  for (const [name, text] of Object.entries(written)) {
    const asText = { ...input, [name]: text };
    if (!/^["[{]/.test(text) && isRefused(input, name) && !isRefused(asText, name)) input = asText;
  }
  return input;
}

const readingIn = (message: string): Command | undefined =>
  changes.test(message) ? undefined : readings.find(([words]) => words.test(message))?.[1];

const maxLikely = 8;
const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .map((word) => word.replace(/s$/, ""));

/** The tools that have the most words in common with a message; none if these are too many to tell what is meant. */
function likelyIn(message: string): ToolName[] {
  const said = new Set(wordsOf(message));
  const common = names.map((name) => wordsOf(name).filter((word) => said.has(word)).length);
  const most = Math.max(...common);
  const likely = most === 0 ? [] : names.filter((_, at) => common[at] === most);
  return likely.length > maxLikely ? [] : likely;
}

function unknown(message: string, name: string): string {
  const [likely, ...others] = likelyIn(message);
  const refused = `There is no tool “${name.slice(0, 60)}”.`;
  if (likely === undefined) return `${refused}\n\n${help()}`;
  const about = others.length === 0 ? helpOn(likely) : described([likely, ...others]);
  return `${refused} “help” lists all. Did you mean this?\n\n${about}`;
}

/** Parses a message as a command, for installations without a model. */
export function readCommand(message: string): Command {
  const [, name = "", rest = ""] = /^\s*(\S+)([^]*)$/.exec(message) ?? [];
  if (name === "help") return { answer: rest.trim() ? helpOn(rest.trim()) : help() };
  if (!isTool(name)) return readingIn(message) ?? { answer: unknown(message, name) };
  const written = pairsIn(rest);
  return written
    ? { tool: name, input: inputOf(name, written) }
    : { answer: `Write arguments as key=value.\n\n${helpOn(name)}` };
}

import * as z from "zod";
import { exitCodes } from "../../cli/failure.ts";
import { answers } from "../../protocol/cli.ts";
import { printedBy, type Printed } from "../../cli/command.ts";
import { createProgram, everyCommand, type AnyCommand } from "../../cli/program.ts";
import { version } from "../../cli/version.ts";

const pathOf = (one: AnyCommand): string =>
  one.parent === null ? one.name() : `${pathOf(one.parent)} ${one.name()}`;

const usageOf = (one: AnyCommand): string =>
  [
    pathOf(one),
    ...one.registeredArguments.map((argument) => {
      const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
      return argument.required ? `<${name}>` : `[${name}]`;
    }),
  ].join(" ");

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

const meanings: Record<keyof typeof exitCodes, string> = {
  done: "done",
  failure: "failed, such as a deployment that did not go live or a service that cannot be reached",
  usage:
    "wrong arguments or values; nothing was changed but what the message names, such as earlier steps of an `up`",
  signedOut: "not signed in, or the key is no longer valid",
  notFound: "there is no such site, deployment …",
  refused: "refused: the account lacks permission, or the state does not allow it",
  rateLimited: "too many requests, after waiting",
  paymentNeeded: "needs a payment first",
  interrupted: "ended by Ctrl-C",
  unread:
    "ended because the reader of its output or messages was gone, as after `| head`, whatever the command's result",
};

type Shape = {
  type?: string;
  enum?: string[];
  const?: unknown;
  properties?: Record<string, Shape>;
  items?: Shape;
  anyOf?: Shape[];
  $ref?: string;
  description?: string;
};

/** A schema as a reader of a manual wants it: `{url, checks: [{check, ok, detail}]}`. */
function shapeText(shape: Shape): string {
  if (shape.$ref !== undefined) return shape.$ref.split("/").at(-1) ?? "";
  if (shape.type === "array") return `[${shape.items ? shapeText(shape.items) : ""}]`;
  if (shape.type !== "object" || shape.properties === undefined) return "";
  const members = Object.entries(shape.properties).map(([name, inner]) => {
    const text = shapeText(inner);
    return text === "" || text === "[]" ? name : `${name}: ${text}`;
  });
  return `{${members.join(", ")}}`;
}

/** What --json prints, in words. */
function jsonText(prints: Printed | undefined): string {
  if (prints === null) return "Not with `--json`: it gives the terminal to another program.";
  if (typeof prints === "object") return `With \`--json\`: ${valueText(prints.lines)} on each line.`;
  if (prints === undefined) throw new Error("A command says nothing of --json");
  return `With \`--json\`: ${prints in answers ? valueText(prints as keyof typeof answers) : `the response of \`${prints}\``}.`;
}
function valueText(name: keyof typeof answers): string {
  const schema = answers[name];
  const { id } = schema.meta() ?? {};
  if (id !== undefined) return `\`${id}\` of the API`;
  const shape = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Shape;
  const text = shapeText(shape);
  return text === "" ? (shape.description ?? name) : `\`${text}\``;
}

const optionRows = (one: AnyCommand): string[] =>
  one.options.map((option) => `| \`${option.flags}\` | ${cell(option.description)}${defaultOf(option)} |`);
const defaultOf = ({ defaultValue }: { defaultValue?: unknown }): string =>
  typeof defaultValue === "number" || (typeof defaultValue === "string" && defaultValue !== "")
    ? ` (default: ${defaultValue})`
    : "";

/** Commands that do something, in the order of the help. */
const leaves = (): AnyCommand[] => everyCommand(createProgram()).filter((one) => one.commands.length === 0);

/** docs/manual/cli.md: the introduction, which is written, and the reference, which follows from the commands. */
export function cliReference(introduction: string): string {
  const program = createProgram();
  const sections = leaves().map((one) => {
    const described = one.registeredArguments.filter(({ description }) => description !== "");
    return [
      `### ${pathOf(one)}`,
      `${sentence(one.description())}.`,
      `\`\`\`\n${usageOf(one)}\n\`\`\``,
      ...(described.length + one.options.length === 0
        ? []
        : [
            [
              "| | |",
              "|---|---|",
              ...described.map((argument) => `| \`${argument.name()}\` | ${cell(argument.description)} |`),
              ...optionRows(one),
            ].join("\n"),
          ]),
      jsonText(printedBy(one)),
    ].join("\n\n");
  });
  return `${[
    introduction.trim(),
    "## Exit codes",
    [
      "| Code | Meaning |",
      "|---|---|",
      ...Object.entries(exitCodes).map(
        ([name, code]) => `| ${code} | ${meanings[name as keyof typeof exitCodes]} |`,
      ),
    ].join("\n"),
    "## Options of every command",
    ["| Option | |", "|---|---|", ...optionRows(program)].join("\n"),
    "## Commands",
    ...sections,
  ].join("\n\n")}\n`;
}

/** Text for troff: a line must not begin with a dot, and backslashes and hyphens are escaped (man(7)). */
const troff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1")
    // troff reads bytes: other characters have names.
    .replaceAll(
      /[^\0-\x7f]/gu,
      (one) => `\\[u${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    );

const manOptions = (one: AnyCommand) =>
  one.options.flatMap(({ flags, description }) => [
    ".TP",
    `.B ${troff(flags)}`,
    troff(description || "See the API."),
  ]);

/** The page of man(1). */
export function manPage(): string {
  const program = createProgram();
  return `${[
    `.TH BERTH 1 "" "berth ${version}" "User Commands"`,
    ".SH NAME",
    "berth \\- deploy and run sites and databases on a Berth service",
    ".SH SYNOPSIS",
    ".B berth",
    "[options] command",
    ".SH OPTIONS",
    ...manOptions(program),
    ".SH COMMANDS",
    ...leaves().flatMap((one) => [
      `.SS ${troff(usageOf(one))}`,
      `${troff(sentence(one.description()))}.`,
      ...manOptions(one),
    ]),
    ".SH EXIT STATUS",
    ...Object.entries(exitCodes).flatMap(([name, code]) => [
      ".TP",
      `.B ${code}`,
      troff(meanings[name as keyof typeof exitCodes]),
    ]),
    ".SH ENVIRONMENT",
    ".TP",
    ".B BERTH_URL, BERTH_TOKEN, BERTH_PROFILE, BERTH_SITE",
    "as the options of these names",
    ".TP",
    ".B NO_COLOR",
    "no colours",
    ".SH FILES",
    ".TP",
    ".B $XDG_CONFIG_HOME/berth/config.json",
    "addresses and keys, readable by their owner only",
  ].join("\n")}\n`;
}

/** The part of the file that people write. */
export const introductionOf = (file: string): string => file.split("\n## Exit codes")[0] ?? "";

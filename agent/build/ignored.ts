import { posix } from "node:path";
import { JobError } from "../host.ts";

type Part =
  | { kind: "character"; isIt: (character: string) => boolean }
  /** `*`, `**` before something else, and `**` at the end. */
  | { kind: "name" | "folders" | "rest" };
type Rule = { parts: Part[]; isException: boolean; start: string };

/** Whoever wrote the file, each path is held to all of it. */
const mostCharacters = 32 * 1024;

/**
 * What a .dockerignore leaves out of a build context (https://docs.docker.com/build/concepts/context/#dockerignore-files).
 * Not by regular expressions: strangers' patterns would hold up the agent for hours.
 * @throws JobError when the engine could not read it either
 */
export function ignoredBy(text: string): (path: string, isFolder: () => boolean) => boolean {
  if (text.length > mostCharacters)
    throw new JobError(`The file .dockerignore is larger than ${mostCharacters / 1024} KB: make it smaller.`);
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap(ruleOf);
  const exceptions = rules.filter(({ isException }) => isException);
  return (path, isFolder) => {
    let isIgnored = false;
    for (const rule of rules)
      if (isIgnored === rule.isException && matches(rule.parts, path)) isIgnored = !isIgnored;
    // What is excepted may lie below an ignored folder.
    const isAbove = ({ start }: Rule) => start.startsWith(`${path}/`) || `${path}/`.startsWith(start);
    return isIgnored && !(exceptions.some(isAbove) && isFolder());
  };
}

function ruleOf(line: string): Rule[] {
  const trimmed = line.startsWith("#") ? "" : line.trim();
  const isException = trimmed.startsWith("!");
  const written = isException ? trimmed.slice(1).trim() : trimmed;
  if (written === "") return [];
  const pattern = posix
    .normalize(written)
    .replace(/(?<=.)\/$/, "")
    .replace(/^\/(?=.)/, "");
  return [{ parts: partsOf(pattern), isException, start: /^[^*?[\\]*/.exec(pattern)?.[0] ?? "" }];
}

const exactly = (character: string): Part => ({ kind: "character", isIt: (other) => other === character });

function partsOf(pattern: string): Part[] {
  const characters = Array.from(pattern);
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? "";
    if (character === "*" && characters[at + 1] === "*") {
      at += characters[at + 2] === "/" ? 2 : 1;
      parts.push({ kind: at + 1 < characters.length ? "folders" : "rest" });
    } else if (character === "*") parts.push({ kind: "name" });
    else if (character === "?") parts.push({ kind: "character", isIt: (other) => other !== "/" });
    else if (character === "[") {
      const end = characters.indexOf("]", at + 2);
      if (end < 0)
        throw new JobError(`The pattern ${pattern} in .dockerignore has a [ without its ]: mend it.`);
      parts.push({ kind: "character", isIt: oneOf(characters.slice(at + 1, end)) });
      at = end;
    } else parts.push(exactly(character === "\\" ? (characters[++at] ?? "\\") : character));
  }
  return parts;
}

/** Of `[a-z_]`, or of `[^a-z_]`. */
function oneOf(listed: string[]): (character: string) => boolean {
  const isNegated = listed[0] === "^";
  const ranges: [from: string, to: string][] = [];
  for (let at = isNegated ? 1 : 0; at < listed.length; at++) {
    const from = listed[at] ?? "";
    const isRange = listed[at + 1] === "-" && at + 2 < listed.length;
    ranges.push([from, (isRange ? listed[(at += 2)] : from) ?? from]);
  }
  return (character) => ranges.some(([from, to]) => from <= character && character <= to) !== isNegated;
}

/** Whether a pattern is of the path or of a folder above it: all that it may have come to is followed at once. */
function matches(parts: readonly Part[], path: string): boolean {
  const end = parts.length;
  const enter = (places: Uint8Array, place: number): void => {
    for (let at = place; ; at++) {
      places[at] = 1;
      const part = parts[at];
      // Each of these may also be nothing.
      if (part === undefined || part.kind === "character") return;
    }
  };
  let now = new Uint8Array(end + 1);
  let next = new Uint8Array(end + 1);
  enter(now, 0);
  for (const character of path) {
    if (character === "/" && now[end] === 1) return true;
    next.fill(0);
    for (const [at, part] of parts.entries()) {
      if (now[at] !== 1) continue;
      if (part.kind === "character") {
        if (part.isIt(character)) enter(next, at + 1);
      } else if (part.kind === "rest" || (part.kind === "name" && character !== "/")) enter(next, at);
      else if (part.kind === "folders") {
        next[at] = 1;
        if (character === "/") enter(next, at + 1);
      }
    }
    if (!next.includes(1)) return false;
    [now, next] = [next, now];
  }
  return now[end] === 1;
}

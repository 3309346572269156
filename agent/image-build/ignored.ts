import { posix } from "node:path";
import { JobError } from "../job.ts";

type Part =
  | { kind: "character"; isIt: (character: string) => boolean; costs: number }
  /** `*`, `**` before something else, and `**` at the end. */
  | { kind: "name" | "folders" | "rest" };
type Rule = { matches: ReturnType<typeof matcher>; isException: boolean; start: string };

/** Whoever wrote the file, each path is held to all of it. */
const mostCharacters = 32 * 1024;
/** Of comparing, for all paths of a repository together. A dozen rules that people write take 60 million for 100,000 files. */
const mostSteps = 1_000_000_000;

/**
 * What a .dockerignore leaves out of a build context (https://docs.docker.com/build/concepts/context/#dockerignore-files).
 * Not by regular expressions: strangers' patterns would hold up the agent for hours.
 * @param name of the file, for what is thrown
 * @throws JobError when the engine could not read it either, and, as does the function it answers, when it asks for too much
 */
export function ignoredBy(
  text: string,
  steps = mostSteps,
  name = ".dockerignore",
): (path: string, isFolder: () => boolean) => boolean {
  if (text.length > mostCharacters)
    throw new JobError(`The file ${name} is larger than ${mostCharacters / 1024} KB: make it smaller.`);
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line) => ruleOf(line, name));
  const exceptions = rules.filter(({ isException }) => isException);
  let left = steps;
  const take: Take = (count) => {
    if ((left -= count) < 0)
      throw new JobError(
        `The file ${name} takes too long to compare with the repository's files: use fewer and simpler patterns, with fewer * in each.`,
      );
  };
  return (path, isFolder) => {
    let isIgnored = false;
    for (const rule of rules)
      if (isIgnored === rule.isException && rule.matches(path, take)) isIgnored = !isIgnored;
    if (!isIgnored) return false;
    // What is excepted may lie below an ignored folder.
    const inside = `${path}/`;
    take(exceptions.length);
    return !(
      exceptions.some(({ start }) => start.startsWith(inside) || inside.startsWith(start)) && isFolder()
    );
  };
}

/** Counts what is compared. @throws JobError */
type Take = (count: number) => void;

function ruleOf(line: string, name: string): Rule[] {
  const trimmed = line.startsWith("#") ? "" : line.trim();
  const isException = trimmed.startsWith("!");
  const written = isException ? trimmed.slice(1).trim() : trimmed;
  if (written === "") return [];
  const pattern = posix
    .normalize(written)
    .replace(/(?<=.)\/$/, "")
    .replace(/^\/(?=.)/, "");
  return [
    { matches: matcher(partsOf(pattern, name)), isException, start: /^[^*?[\\]*/.exec(pattern)?.[0] ?? "" },
  ];
}

const exactly = (character: string): Part => ({
  kind: "character",
  isIt: (other) => other === character,
  costs: 1,
});

function partsOf(pattern: string, name: string): Part[] {
  const characters = Array.from(pattern);
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? "";
    if (character === "*" && characters[at + 1] === "*") {
      at += characters[at + 2] === "/" ? 2 : 1;
      once(parts, at + 1 < characters.length ? "folders" : "rest");
    } else if (character === "*") once(parts, "name");
    else if (character === "?") parts.push({ kind: "character", isIt: (other) => other !== "/", costs: 1 });
    else if (character === "[") {
      const end = characters.indexOf("]", at + 2);
      if (end < 0) throw new JobError(`The pattern ${pattern} in ${name} has a [ without its ]: mend it.`);
      parts.push({ kind: "character", isIt: oneOf(characters.slice(at + 1, end)), costs: end - at });
      at = end;
    } else parts.push(exactly(character === "\\" ? (characters[++at] ?? "\\") : character));
  }
  return parts;
}

/** Twice the same star means no more than once. */
function once(parts: Part[], kind: Exclude<Part["kind"], "character">): void {
  if (parts.at(-1)?.kind !== kind) parts.push({ kind });
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
function matcher(parts: readonly Part[]): (path: string, take: Take) => boolean {
  const end = parts.length;
  // The places that a path may have come to; where one is in a list already, `seen` has the list's number.
  let now: number[] = [];
  let next: number[] = [];
  const seen = new Float64Array(end + 1);
  let number = 0;
  const stay = (place: number): void => {
    if (seen[place] === number) return;
    seen[place] = number;
    next.push(place);
  };
  /** And those behind it, as a star may also be nothing. */
  const enter = (place: number): void => {
    for (let at = place; ; at++) {
      stay(at);
      const part = parts[at];
      if (part === undefined || part.kind === "character") return;
    }
  };
  const turn = (): void => {
    [now, next] = [next, now];
    next.length = 0;
    number++;
  };
  return (path, take) => {
    next.length = 0;
    number++;
    enter(0);
    turn();
    for (const character of path) {
      if (character === "/" && now.includes(end)) return true;
      take(now.length);
      for (const at of now) {
        const part = parts[at];
        if (part === undefined) continue;
        if (part.kind === "character") {
          if (part.costs > 1) take(part.costs);
          if (part.isIt(character)) enter(at + 1);
        } else if (part.kind === "rest" || (part.kind === "name" && character !== "/")) enter(at);
        else if (part.kind === "folders") {
          stay(at);
          if (character === "/") enter(at + 1);
        }
      }
      if (next.length === 0) return false;
      turn();
    }
    return now.includes(end);
  };
}

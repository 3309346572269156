import { maxCommand, maxNotes, maxSentence, maxWord } from "../../../protocol/inspection-limits.ts";
import type { Described } from "./describe.ts";

const commands = {
  installCommand: "install command",
  buildCommand: "build command",
  startCommand: "start command",
  releaseCommand: "release command",
} as const;

/** What a repository says may be of any length and hold any character, and an answer may not. */
export function fitting(found: Described): Described {
  const unshown = (Object.keys(commands) as (keyof typeof commands)[]).filter(
    (name) => !fits(found[name], maxCommand),
  );
  const notes = unshown.map(
    (name) =>
      `Its ${commands[name]} is too long to be shown here, or has characters that cannot be: its files say what it is.`,
  );
  return {
    ...found,
    // A part of a command would be another one.
    ...Object.fromEntries(unshown.map((name) => [name, null])),
    languageVersion: fits(found.languageVersion, maxWord) ? found.languageVersion : null,
    packageManager: fits(found.packageManager, maxWord) ? found.packageManager : null,
    notes: [...found.notes, ...notes].slice(0, maxNotes).map(sentence),
    problem: found.problem === null ? null : sentence(found.problem),
  };
}

const fits = (text: string | null, most: number): boolean =>
  text === null || (text.length <= most && text.isWellFormed() && !text.includes("\0"));

export function sentence(said: string): string {
  const cut = said.length > maxSentence ? `${said.slice(0, maxSentence - 1)}…` : said;
  return cut.replaceAll("\0", "\uFFFD").toWellFormed();
}

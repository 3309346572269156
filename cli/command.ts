import { Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { OperationId } from "../client/index.ts";

const jsonAnswers = new WeakMap<object, string>();

/**
 * A command. `prints`: what it prints with --json: the answer of this operation, or in words what else. `examples`: for
 * its help and the reference.
 */
export function command(name: string, summary: string, prints?: OperationId | { words: string }): Command {
  const made = new Command(name).description(summary);
  if (prints !== undefined) jsonAnswers.set(made, typeof prints === "string" ? prints : prints.words);
  return made;
}

/** What a command prints with --json; undefined: nothing. */
export const jsonOf = (of: object): string | undefined => jsonAnswers.get(of);

/** Commands under one noun. */
export function group(
  name: string,
  summary: string,
  children: { name(): string }[],
  aliases: string[] = [],
): Command {
  const made = new Command(name).description(summary);
  for (const child of children) made.addCommand(child as Command);
  return made.aliases(aliases);
}

/** A whole number as an option. */
export const whole = (text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Give a whole number.");
  return Number(text);
};

/** Collects an option that may be given several times. */
export const several = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text];

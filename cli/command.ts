import { Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { Answers, OperationId } from "../client/index.ts";

/**
 * What a command prints with --json: the answer of an operation, one of protocol/cli.ts, or one of these a line. null: it
 * gives the terminal to another program, and refuses --json.
 */
export type Printed = OperationId | keyof Answers | { lines: keyof Answers } | null;

const printed = new WeakMap<object, Printed>();

export function command(name: string, summary: string, prints: Printed): Command {
  const made = new Command(name).description(summary);
  printed.set(made, prints);
  return made;
}

/** undefined: a group of commands. */
export const printedBy = (of: object): Printed | undefined => printed.get(of);
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

/** A billing term. */
export const billingTerm = (text: string): 1 | 3 | 6 | 12 | 24 => {
  const term = ([1, 3, 6, 12, 24] as const).find((one) => String(one) === text);
  if (term === undefined) throw new InvalidArgumentError("Give 1, 3, 6, 12 or 24.");
  return term;
};

/** Collects an option that may be given several times. */
export const several = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text];

import { usage } from "./failure.ts";

/** The halves of `field=value`. @throws Failure (usage) */
export function split(pair: string): [string, string] {
  const at = pair.indexOf("=");
  if (at < 1) throw usage(`${pair} is not field=value.`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** A value that is JSON as such, otherwise the text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Fields that take text of any form, which may look like a number. A list, as the program starts without the operations'
 * schemas; a test holds it against them.
 */
export const textFields: ReadonlySet<string> = new Set(
  [
    "name note message email address country vatId url username password ipv4 ipv6",
    "githubUrl branch gitToken rootDir dockerfile dockerfilePath image registryUsername registryPassword region",
    "languageVersion installCommand buildCommand releaseCommand startCommand outputDir healthCheckPath",
    "primaryDomain headers.* logo accent termsUrl privacyUrl imprintUrl supportUrl",
  ].flatMap((line) => line.split(" ")),
);

/** What a field is set to: JSON as such, and where it takes text all that is neither null nor in quotes as it is typed. */
function valueOf(text: string, takesText: boolean): unknown {
  const value = parsed(text);
  return takesText && value !== null && typeof value !== "string" ? text : value;
}

type Nested = { [name: string]: unknown };

/** Objects of the record that a change replaces as a whole, by their paths. */
type Wholes = Record<string, object | null>;

/**
 * The object that `field=value` and `field.inner=value` say. One of `wholes` keeps what else it has: null takes a part of it
 * away. @throws Failure (usage)
 */
export function fieldsFrom(pairs: readonly string[], wholes: Wholes = {}): Nested {
  const all: Nested = {};
  for (const pair of pairs) {
    const [path, value] = split(pair);
    const names = path.split(".");
    const last = names.pop() ?? "";
    if (![...names, last].every((name) => /^[A-Za-z0-9][\w-]*$/.test(name)))
      throw usage(`${path} is not the name of a field.`);
    let at = all;
    for (const [depth, name] of names.entries()) {
      const whole = wholes[names.slice(0, depth + 1).join(".")];
      const inner = Object.hasOwn(at, name) ? at[name] : { ...whole };
      if (typeof inner !== "object" || inner === null || Array.isArray(inner))
        throw usage(`${path} is within a field that has a value.`);
      at[name] = inner;
      at = inner as Nested;
    }
    const set = valueOf(value, textFields.has(last) || textFields.has(`${names.at(-1)}.*`));
    if (set === null && wholes[names.join(".")]) delete at[last];
    else at[last] = set;
  }
  return all;
}

export const pairsHelp = "fields to change; JSON is taken as such where the field is not text, null unsets";

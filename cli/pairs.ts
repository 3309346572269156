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

type Nested = { [name: string]: unknown };

/** The object that `field=value` and `field.inner=value` say. @throws Failure (usage) */
export function fieldsFrom(pairs: readonly string[]): Nested {
  const all: Nested = {};
  for (const pair of pairs) {
    const [path, value] = split(pair);
    const names = path.split(".");
    const last = names.pop() ?? "";
    if (![...names, last].every((name) => /^[A-Za-z0-9]\w*$/.test(name)))
      throw usage(`${path} is not the name of a field.`);
    let at = all;
    for (const name of names) {
      const inner = Object.hasOwn(at, name) ? at[name] : {};
      if (typeof inner !== "object" || inner === null || Array.isArray(inner))
        throw usage(`${path} is within a field that has a value.`);
      at[name] = inner;
      at = inner as Nested;
    }
    at[last] = parsed(value);
  }
  return all;
}

export const pairsHelp = "fields to change; a value that is JSON is taken as such, null unsets";

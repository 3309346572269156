import { load } from "js-yaml";
import { parse } from "smol-toml";

export type Table = Record<string, unknown>;

/** No file that people write by hand is longer; what is longer is only slow to read. */
const mostCharacters = 256 * 1024;

const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** null where it is no table. */
export const tableIn = (value: unknown, ...names: readonly string[]): Table | null => {
  let table = isTable(value) ? value : null;
  for (const name of names) {
    const inner = table !== null && Object.hasOwn(table, name) ? table[name] : null;
    table = isTable(inner) ? inner : null;
  }
  return table;
};

export const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

/** null where it is not TOML, or too long. */
export function parseToml(text: string): Table | null {
  if (text.length > mostCharacters) return null;
  try {
    return parse(text);
  } catch {
    return null;
  }
}

/** null where it is no YAML mapping, or too long. A key that occurs twice has its last value. */
export function parseYaml(text: string): Table | null {
  if (text.length > mostCharacters) return null;
  try {
    return tableIn(load(text, { json: true, maxAliases: 100, maxDepth: 50 }));
  } catch {
    return null;
  }
}

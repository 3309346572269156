/**
 * Names of arguments whose values are secrets or customers' data. A test compares the argument names of all operations
 * with this list and its own list of harmless ones.
 */
export const secretArguments: ReadonlySet<string> = new Set([
  "value",
  "gitToken",
  "token",
  "registryPassword",
  "password",
  "statement",
  // Of the assistant's tools: the same.
  "query",
  "confirm",
  // Of the second step.
  "code",
  // Of an account, which its owner reads in the activity and only operators write; of a seller, printed on each invoice anyway.
  "note",
  // Of an account, whose deletion forgets it.
  "email",
  // The address of a chat's webhook is its credential.
  "url",
]);

const maxTextLength = 200;
const maxItems = 50;
const hidden = "…";

/** The recorded form of arguments: without secrets, with long texts and lists truncated. */
export function shownArguments(input: Record<string, unknown>): Record<string, unknown> {
  const { id: _id, lastEventId: _lastEventId, ...rest } = input;
  return shown(rest) as Record<string, unknown>;
}

function shown(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > maxTextLength ? `${value.slice(0, maxTextLength)}${hidden}` : value;
  if (Array.isArray(value)) return value.slice(0, maxItems).map(shown);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      secretArguments.has(name) && one !== null && one !== undefined ? hidden : shown(one),
    ]),
  );
}

/** For whoever is to confirm them: whole, as what is left out may be what matters, and without secrets. */
export const writtenOut = (input: object): string =>
  JSON.stringify(input, (name, one: unknown) => {
    if (name !== "value" && name !== "query" && secretArguments.has(name)) return hidden;
    const isSecret = typeof one === "object" && one !== null && "secret" in one && one.secret === true;
    return isSecret ? { ...one, value: hidden } : one;
  });

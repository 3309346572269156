/**
 * An object with these names and nothing in them, to be copied and filled. One that gets more than a dozen names by assignment becomes
 * a dictionary in V8, which takes several times as long to fill, to read and to write as JSON.
 */
export const blankOf = <Name extends string>(names: readonly Name[]): Record<Name, null> =>
  JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, null])))) as Record<Name, null>;

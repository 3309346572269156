import { describe, expect, it } from "vitest";
import type * as z from "zod";
import { operations } from "../../protocol/api/operations.ts";
import { text } from "../../protocol/api/common.ts";

type Path = (string | number)[];

/** Where there are texts in a body. */
function textsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value === "string") return [path];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, [...path, key]));
}

function withText(value: unknown, [key, ...rest]: Path, put: (text: string) => string): unknown {
  if (key === undefined) return put(String(value));
  const copy = structuredClone(value) as Record<string | number, unknown>;
  copy[key] = withText(copy[key], rest, put);
  return copy;
}

type Described = { body?: z.ZodType; examples?: { body?: unknown } };
const bodies = Object.entries(operations as Record<string, Described>).flatMap(([name, { body, examples }]) =>
  body && examples?.body !== undefined ? [{ name, body, example: examples.body }] : [],
);
/** Regions are held to those that there are. */
const cases = bodies.flatMap(({ name, body, example }) =>
  textsIn(example)
    .filter((path) => path.at(-1) !== "region")
    .map((path) => [name, path.join("."), { body, example, path }] as const),
);

describe("a body with a NUL or half a surrogate pair", () => {
  it("is looked at in every operation that takes texts", () => {
    expect(bodies.filter(({ body, example }) => !body.safeParse(example).success)).toEqual([]);
    expect(cases.length).toBeGreaterThan(20);
  });

  it.each(cases)("is refused by %s in %s, which the refusal names", (_, field, { body, example, path }) => {
    for (const character of ["\0", "\ud800", "\udc00"]) {
      const { error } = body.safeParse(withText(example, path, (before) => before + character));
      expect(JSON.stringify(error?.issues)).toContain(field.split(".").at(-1));
    }
  });

  it("is none with a whole pair, or any other character", () => {
    for (const fine of ["", "a\tb\nc", "\u{1F600}", "\u0001", "ü"])
      expect(text.safeParse(fine).success).toBe(true);
  });
});

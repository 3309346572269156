import { expect, it } from "vitest";
import * as z from "zod";
import "../../protocol/issue-messages.ts";

const Form = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("a"), list: z.array(z.string()).max(1).optional() }),
  z.strictObject({ kind: z.literal("b") }),
]);

it.each<[z.ZodType, unknown, string]>([
  [z.string(), undefined, "required"],
  [z.string(), 1, "must be a string"],
  [z.coerce.number(), "x", "must be a number"],
  [z.int(), 1.5, "must be a whole number"],
  [z.strictObject({}), null, "must be an object"],
  [z.boolean(), "yes", "must be true or false"],
  [z.string().min(1), "", "must not be empty"],
  [z.string().min(2), "a", "must have at least 2 characters"],
  [z.string().max(1), "ab", "must have at most 1 character"],
  [z.string().length(3), "ab", "must have exactly 3 characters"],
  [z.array(z.string()).min(1), [], "must not be empty"],
  [z.int().min(1), 0, "must be at least 1"],
  [z.number().positive(), 0, "must be more than 0"],
  [z.int().max(65_535), 99_999, "must be at most 65535"],
  [z.int().multipleOf(5), 7, "must be a multiple of 5"],
  [z.literal("yes"), "no", 'must be "yes"'],
  [z.enum(["a", "b"]), "c", 'must be one of "a", "b"'],
  [Form, {}, 'must be one of "a", "b"'],
  [Form, { kind: "a", list: ["x", "y"] }, "must have at most 1 entry"],
  [Form, { kind: "b", c: 1 }, 'unknown field "c"'],
  [Form, { kind: "b", c: 1, d: 1 }, 'unknown fields "c", "d"'],
  [
    Form,
    { kind: "b", ...Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`f${index}`, 1])) },
    `unknown fields ${Array.from({ length: 20 }, (_, index) => `"f${index}"`).join(", ")} and 3 more`,
  ],
  [z.email(), "x", "must be an email address"],
  [z.iso.datetime(), "x", "must be a time such as 2026-01-31T12:00:00Z"],
  [z.string().regex(/^a$/), "b", "not in the expected form"],
  [z.string("a name"), 1, "a name"],
])("a refused value is named in words that need no knowledge of the schema: %#", (schema, given, message) => {
  expect(schema.safeParse(given).error?.issues).toMatchObject([{ message }]);
});

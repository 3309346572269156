import * as z from "zod";
import { idPattern, idPrefixes, type IdKind, type Id } from "../ids.ts";

export const idOf = <K extends IdKind>(kind: K) =>
  z.custom<Id<K>>((value) => typeof value === "string" && idPattern(kind).test(value), `not a ${kind} id`);

/**
 * Text that a database, a file system or a program may be given: a NUL ends it in many of them, and half a surrogate pair
 * has no UTF-8.
 */
export const text = z.string().refine((value) => !value.includes("\0") && value.isWellFormed(), {
  error: "no NUL character and no half of a surrogate pair",
  abort: true,
});

/** ISO 8601, UTC, with `Z`. */
export const Timestamp = z.iso.datetime("a time in UTC, such as 2026-11-21T12:00:00Z");

/** A price. Processors charge no less than 50 cents, and a mistyped price shall not be a fortune. */
export const AmountCents = z.number().int().min(50).max(99_999_999);

/** A whole number as a parameter: in plain decimal, which `0x10`, `1e1` and ` 1` are not. */
export const wholeNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^(?:0|[1-9]\d{0,15})$/, "a whole number in plain decimal")
    .transform(Number)
    .pipe(z.number().int().min(minimum).max(maximum))
    .meta({ override: () => ({ type: "integer", minimum, maximum }) });

/** Of a list of this kind: its cursors are ids, also shorter ones that came with the service. */
export const listQuery = (kind: IdKind) =>
  z.strictObject({
    limit: wholeNumber(1, 100).default(50),
    cursor: z
      .string()
      .regex(new RegExp(`^${idPrefixes[kind]}_[0-9a-z]{1,40}$`), "a nextCursor of this list")
      .optional(),
  });
export type ListQuery = z.infer<ReturnType<typeof listQuery>>;

/** What an endpoint about one resource is given: the text from its path, checked by the verb. */
export type ById = { id: string };
/** The last server-sent event that the reader of a stream has seen. */
export type Resumed = { lastEventId?: string | undefined };

/** Newest first; `nextCursor` is null on the last page. */
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), nextCursor: z.string().nullable() });
export type Page<T> = { data: T[]; nextCursor: string | null };

export const ErrorBody = z.looseObject({ error: z.string() }).meta({ id: "ErrorBody" });
export type ErrorBody = z.infer<typeof ErrorBody>;

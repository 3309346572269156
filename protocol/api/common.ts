/* oxlint-disable no-control-regex -- by their ranges: \p{Cc} needs a flag that patterns of JSON Schema do not have */
import * as z from "zod";
import { idPattern, idPrefixes, type IdKind, type Id } from "../ids.ts";

export const idOf = <K extends IdKind>(kind: K) =>
  z.custom<Id<K>>((value) => typeof value === "string" && idPattern(kind).test(value), `not a ${kind} id`);

/**
 * Text that databases, file systems and programs accept: no NUL, which terminates strings in many of them, and no lone
 * surrogate, which has no UTF-8 encoding.
 */
export const text = z.string().refine((value) => !value.includes("\0") && value.isWellFormed(), {
  error: "must not contain NUL or an unpaired surrogate",
  abort: true,
});

/**
 * A name that others read, of up to `max` characters: on one line, and without characters that cannot be seen or that turn
 * the direction of what is written after them, such as U+202E.
 */
export const nameOf = (max: number) =>
  text
    .trim()
    .min(1)
    .max(max)
    .regex(
      // The dot leaves out U+2028 and U+2029, which generators of clients write into source as they are.
      /^(?:(?![\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]).)*$/,
      "one line, without invisible characters or characters that change the direction of text",
    );

/** What a borrowed browser must not do takes one, where the account has a second step. */
export const secondFactorCode = text
  .max(100)
  .optional()
  .describe("Required with two-step sign-in: a code from the authenticator app, or a recovery code.");

/** ISO 8601, UTC, with `Z`. */
export const Timestamp = z.iso.datetime("a time in UTC, such as 2026-11-21T12:00:00Z");

/** Payment processors require at least 50 cents; the maximum limits the damage of a typing error. */
export const AmountCents = z.number().int().min(50).max(99_999_999);

/** A whole number as a query parameter, in plain decimal: rejects `0x10`, `1e1` and ` 1`. */
export const wholeNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^(?:0|[1-9]\d{0,15})$/, "a whole number in plain decimal")
    .transform(Number)
    .pipe(z.number().int().min(minimum).max(maximum))
    .meta({
      override({ jsonSchema }: { jsonSchema: { pattern?: string } }) {
        delete jsonSchema.pattern;
        Object.assign(jsonSchema, { type: "integer", minimum, maximum });
      },
    });

/** A filter of a list: those of this resource. */
export const idFilter = (kind: IdKind) => z.string().regex(idPattern(kind), `not a ${kind} id`).optional();

/** A list's cursors are ids. Seeded rows have shorter ids than generated ones. */
export const listQuery = (kind: IdKind) =>
  z.strictObject({
    limit: wholeNumber(1, 100).default(50),
    cursor: z
      .string()
      .regex(new RegExp(`^${idPrefixes[kind]}_[0-9a-z]{1,40}$`), "a nextCursor of this list")
      .optional(),
  });
export type ListQuery = z.infer<ReturnType<typeof listQuery>>;

/** The input of an endpoint for one resource: the raw path parameter, which the verb validates. */
export type ById = { id: string };
/** The id of the last server-sent event that the client of a stream received. */
export type Resumed = { lastEventId?: string | undefined };

/** Newest first; `nextCursor` is null on the last page. */
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), nextCursor: z.string().nullable() });
export type Page<T> = { data: T[]; nextCursor: string | null };

export const ErrorBody = z
  .looseObject({
    error: z.string(),
    reason: z.string().optional().describe("What happened and what to do, for people."),
    issues: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe("With invalid_request: the fields and parameters that are wrong, such as `ports.0`."),
    invoiceToken: z
      .string()
      .optional()
      .describe("With payment_required: of the invoice to pay, at `/invoice/<invoiceToken>`."),
    confirm: z
      .string()
      .optional()
      .describe("Of a statement that may write: it runs when it is sent again with this `confirm`."),
    requestId: z.string().optional().describe("With server_error: finds it in the operator's log."),
  })
  .meta({ id: "ErrorBody" });
export type ErrorBody = z.infer<typeof ErrorBody>;

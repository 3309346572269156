import * as z from "zod";
import { text, Timestamp } from "./common.ts";

/** A page of one frame over the host's link, with room for what is around it. */
export const maxResultBytes = 960 * 1024;
export const maxShownStatement = 2000;

const Milliseconds = z.number().nonnegative();
const Statement = z.string().max(maxShownStatement);

/** What the server says of itself now. */
export const DatabaseInsight = z
  .object({
    sizeMb: z.number().nonnegative().describe("On disk; of a redis database in memory."),
    connections: z.object({ used: z.number().int().nonnegative(), max: z.number().int().nonnegative() }),
    cacheHitRatio: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe(
        "Reads answered from memory, from 0 to 1, since the server started; of a redis database look-ups that found a key.",
      ),
    uptimeSeconds: z.number().nonnegative(),
    activeQueries: z
      .array(
        z.object({
          id: z.string().max(50),
          statement: Statement,
          durationMs: Milliseconds,
          state: z.string().max(200),
        }),
      )
      .max(50)
      .describe("Longest first, this question's own left out."),
    slowQueries: z
      .array(
        z.object({
          statement: Statement,
          calls: z.number().int().nonnegative(),
          totalMs: Milliseconds,
          meanMs: Milliseconds,
          maxMs: Milliseconds,
        }),
      )
      .max(20)
      .describe(
        "Those that took the most time in all; of a redis database the newest of its SLOWLOG, one call each.",
      ),
  })
  .meta({ id: "DatabaseInsight" });
export type DatabaseInsight = z.infer<typeof DatabaseInsight>;

export const DatabaseTable = z
  .object({
    schema: z.string(),
    name: z.string(),
    kind: z.enum(["table", "view", "materialized view", "foreign table"]),
    rowsEstimate: z
      .number()
      .nonnegative()
      .nullable()
      .describe("The server's own estimate; null where it has none."),
    sizeMb: z.number().nonnegative().nullable().describe("With its indexes."),
    columns: z.array(
      z.object({
        name: z.string(),
        type: z.string(),
        nullable: z.boolean(),
        default: z.string().nullable(),
      }),
    ),
    primaryKey: z.array(z.string()),
    foreignKeys: z.array(
      z.object({ columns: z.array(z.string()), table: z.string(), references: z.array(z.string()) }),
    ),
    indexes: z.array(z.object({ name: z.string(), unique: z.boolean(), columns: z.array(z.string()) })),
  })
  .meta({ id: "DatabaseTable" });
export type DatabaseTable = z.infer<typeof DatabaseTable>;

/** `tables` of a postgresql or mysql database, `keyspaces` of a redis one. */
export const DatabaseSchema = z
  .object({
    tables: z.array(DatabaseTable),
    keyspaces: z.array(
      z.object({
        database: z.number().int().nonnegative(),
        keys: z.number().int().nonnegative(),
        byType: z
          .record(z.string(), z.number().int().nonnegative())
          .describe("Of the keys that were looked at."),
        sampledKeys: z.number().int().nonnegative(),
      }),
    ),
    truncated: z.boolean().describe("There is more than is shown."),
  })
  .meta({ id: "DatabaseSchema" });
export type DatabaseSchema = z.infer<typeof DatabaseSchema>;

export const maxStatementCharacters = 100_000;

/** One statement. Without `write` it can change nothing; with it, it is run only when it comes again with its `confirm`. */
export const DatabaseQuery = z.strictObject({
  statement: text.trim().min(1).max(maxStatementCharacters),
  write: z.boolean().default(false),
  confirm: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("From the 409 that the same statement was answered with."),
  limit: z.number().int().min(1).max(1000).default(100).describe("Rows."),
  timeoutSeconds: z.number().int().min(1).max(30).default(10),
});
export type DatabaseQuery = z.infer<typeof DatabaseQuery>;

/**
 * Values are null, true, false, numbers where JSON holds them exactly, `{"base64": …}` of bytes that are no text, and
 * otherwise text as the server writes it; a redis reply may be a list of them.
 */
export const DatabaseQueryResult = z
  .object({
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z.array(z.array(z.unknown())),
    truncated: z.boolean().describe("There are more rows than the limit, or than fit into 960 KiB."),
    affectedRows: z.number().int().nonnegative().nullable().describe("Of a statement that writes."),
    durationMs: Milliseconds,
  })
  .meta({ id: "DatabaseQueryResult" });
export type DatabaseQueryResult = z.infer<typeof DatabaseQueryResult>;

/** What a statement that writes is first answered with, beside `error`. */
export const WriteConfirmation = z.object({ reason: z.string(), confirm: z.string(), expiresAt: Timestamp });
export type WriteConfirmation = z.infer<typeof WriteConfirmation>;

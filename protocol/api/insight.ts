import * as z from "zod";
import { text, Timestamp } from "./common.ts";

/** A result fits into one message on the host's link, with room for its envelope. */
export const maxResultBytes = 960 * 1024;
export const maxShownStatement = 2000;
export const maxActiveQueries = 50;

const Milliseconds = z.number().nonnegative();
const Statement = z.string().max(maxShownStatement);

/** Live statistics reported by the server. */
export const DatabaseInsight = z
  .object({
    sizeMb: z.number().nonnegative().describe("Size on disk. For Redis: size in memory."),
    connections: z.object({ used: z.number().int().nonnegative(), max: z.number().int().nonnegative() }),
    cacheHitRatio: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe(
        "The share of reads served from memory since the server started, from 0 to 1. For Redis: the share of lookups that found a key.",
      ),
    uptimeSeconds: z.number().nonnegative(),
    activeQueries: z
      .array(
        z.object({
          id: z.string().max(50),
          statement: Statement,
          durationMs: Milliseconds,
          state: z.string().max(200),
          waitsFor: z
            .string()
            .max(200)
            .nullable()
            .default(null)
            .describe("What it waits for, as the server names it, such as `Lock: transactionid`."),
          blockedBy: z
            .array(z.string().max(50))
            .max(50)
            .default([])
            .describe(
              "The ids of the sessions whose locks it waits for. Only PostgreSQL shows them to a database's owner.",
            ),
        }),
      )
      .max(maxActiveQueries)
      .describe(
        "Longest first, without the query of this request. Includes sessions that are idle in a transaction and may hold locks.",
      ),
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
        "The statements with the highest total time. For Redis: the latest entries of SLOWLOG, one call each.",
      ),
  })
  .meta({ id: "DatabaseInsight" });
export type DatabaseInsight = z.infer<typeof DatabaseInsight>;

export const DatabaseTable = z
  .object({
    schema: z.string(),
    name: z.string(),
    kind: z.enum(["table", "view", "materialized view", "foreign table"]),
    rowsEstimate: z.number().nonnegative().nullable().describe("The server's estimate; null if it has none."),
    sizeMb: z.number().nonnegative().nullable().describe("Including indexes."),
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

/** PostgreSQL and MySQL databases fill `tables`, Redis databases `keyspaces`. */
export const DatabaseSchema = z
  .object({
    tables: z.array(DatabaseTable),
    keyspaces: z.array(
      z.object({
        database: z.number().int().nonnegative(),
        keys: z.number().int().nonnegative(),
        byType: z.record(z.string(), z.number().int().nonnegative()).describe("Among the sampled keys."),
        sampledKeys: z.number().int().nonnegative(),
      }),
    ),
    truncated: z.boolean().describe("Not everything is included."),
  })
  .meta({ id: "DatabaseSchema" });
export type DatabaseSchema = z.infer<typeof DatabaseSchema>;

export const maxStatementCharacters = 100_000;

/**
 * One statement. Without `write` it runs read-only; with `write` it runs only when repeated with the `confirm` token.
 */
export const DatabaseQuery = z.strictObject({
  statement: text.trim().min(1).max(maxStatementCharacters),
  write: z.boolean().default(false),
  confirm: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("The token from the 409 response to the same statement."),
  dryRun: z
    .boolean()
    .default(false)
    .describe(
      "Run a statement that writes, report how many rows it changes, and roll it back: nothing is kept. Locks are held meanwhile, and sequences advance. Not available for Redis.",
    ),
  limit: z.number().int().min(1).max(1000).default(100).describe("Rows."),
  timeoutSeconds: z.number().int().min(1).max(30).default(10),
});
export type DatabaseQuery = z.infer<typeof DatabaseQuery>;

/**
 * Values are null, booleans, numbers that JSON represents exactly, `{"base64": …}` for binary data, and otherwise text
 * as the server formats it. A Redis reply may be a nested list.
 */
export const DatabaseQueryResult = z
  .object({
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z.array(z.array(z.unknown())),
    truncated: z.boolean().describe("There are more rows than the limit, or than fit into 960 KiB."),
    affectedRows: z.number().int().nonnegative().nullable().describe("For statements that write."),
    durationMs: Milliseconds,
  })
  .meta({ id: "DatabaseQueryResult" });
export type DatabaseQueryResult = z.infer<typeof DatabaseQueryResult>;

/** The first answer to a statement that writes, in addition to `error`. */
export const WriteConfirmation = z.object({ reason: z.string(), confirm: z.string(), expiresAt: Timestamp });
export type WriteConfirmation = z.infer<typeof WriteConfirmation>;

/** The session of a database's server with this id existed and was ended. */
export const SessionEnded = z.object({ id: z.string(), ended: z.literal(true) });
export type SessionEnded = z.infer<typeof SessionEnded>;

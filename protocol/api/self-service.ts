import * as z from "zod";
import { nameOf, secondFactorCode, text, Timestamp } from "./common.ts";

export const ProfilePatch = z.strictObject({ name: nameOf(100) }).meta({ id: "ProfilePatch" });
export type ProfilePatch = z.infer<typeof ProfilePatch>;

/** A browser that is signed in. */
export const Session = z
  .object({
    id: z.string(),
    current: z.boolean().describe("The session of this request."),
    ipAddress: z.string().nullable().describe("Where it began."),
    userAgent: z.string().nullable(),
    createdAt: Timestamp,
    lastUsedAt: Timestamp.describe("To the day."),
    expiresAt: Timestamp.describe("Use extends it."),
  })
  .meta({ id: "Session" });
export type Session = z.infer<typeof Session>;

export const SessionRevoked = z.object({ id: z.string(), revoked: z.literal(true) });
export type SessionRevoked = z.infer<typeof SessionRevoked>;
export const SessionsRevoked = z.object({ revoked: z.number().int() });
export type SessionsRevoked = z.infer<typeof SessionsRevoked>;

const deletionObstacles = ["operator", "sites", "databases", "unpaid_invoices", "refunds"] as const;

/** Whether the account can be deleted, and what is lost. */
export const AccountDeletion = z
  .object({
    obstacles: z.array(
      z.object({ code: z.enum(deletionObstacles), count: z.number().int(), reason: z.string() }),
    ),
    credits: z.number().int().describe("Lost with the account; set `loseCredits` if it is not 0."),
    backups: z.number().int().describe("Backups of deleted databases, which are deleted too."),
  })
  .meta({ id: "AccountDeletion" });
export type AccountDeletion = z.infer<typeof AccountDeletion>;

export const AccountDelete = z
  .strictObject({
    email: text.max(254).describe("The account's own address, to prevent accidental deletion."),
    loseCredits: z.boolean().default(false).describe("Needed if the account has credits."),
    code: secondFactorCode,
  })
  .meta({ id: "AccountDelete" });
export type AccountDelete = z.infer<typeof AccountDelete>;

export const AccountDeleted = z.object({ id: z.string(), deleted: z.literal(true) });
export type AccountDeleted = z.infer<typeof AccountDeleted>;

/** The account's data, section by section, in the form in which the API shows it. */
export const AccountExport = z
  .looseObject({ exportedAt: Timestamp, account: z.looseObject({ id: z.string() }) })
  .meta({ id: "AccountExport" });

import * as z from "zod";
import { idPattern } from "../ids.ts";
import { backupStatuses, backupTriggers, databaseTypes } from "../states.ts";
import { listQuery, Timestamp } from "./common.ts";

export const Backup = z
  .object({
    id: z.string(),
    databaseId: z.string(),
    databaseName: z.string(),
    type: z.enum(databaseTypes),
    version: z.string().nullable().describe("Of the server it was made of."),
    status: z
      .enum(backupStatuses)
      .describe("VERIFIED: restored into a throw-away server, and everything was there."),
    trigger: z.enum(backupTriggers),
    sizeBytes: z.number().int().nullable(),
    sha256: z.string().nullable(),
    tables: z.number().int().nullable(),
    rows: z.number().int().nullable().describe("Of redis: keys."),
    error: z.string().nullable(),
    createdAt: Timestamp,
    finishedAt: Timestamp.nullable(),
    verifiedAt: Timestamp.nullable().describe("When it was last found to be whole."),
    expiresAt: Timestamp.nullable().describe("When it goes, once its database is deleted."),
  })
  .meta({ id: "Backup" });
export type Backup = z.infer<typeof Backup>;

/** A database whose planned backups failed, were damaged or could not be verified, and none was proven since. */
export const FailingBackups = z
  .object({
    id: z.string().describe("The database's."),
    accountId: z.string(),
    hostId: z.string().nullable(),
    type: z.enum(databaseTypes),
    since: Timestamp,
    times: z.number().int(),
    reason: z.string().describe("Why the last one failed, without values of rows."),
  })
  .meta({ id: "FailingBackups" });
export type FailingBackups = z.infer<typeof FailingBackups>;

/** It is not shown any more; its file goes within minutes, once no host works on it. */
export const BackupDeleted = z.object({ id: z.string(), status: z.literal("DELETING") });
export type BackupDeleted = z.infer<typeof BackupDeleted>;

export const BackupListQuery = listQuery("backup").extend({
  databaseId: z.string().regex(idPattern("database"), "not a database id").optional(),
});
export type BackupListQuery = z.infer<typeof BackupListQuery>;

/** Whoever has the address may download until then, or until the key or session that asked for it ends; ranges are supported. */
export const BackupLink = z.object({ url: z.url(), expiresAt: Timestamp }).meta({ id: "BackupLink" });
export type BackupLink = z.infer<typeof BackupLink>;

/** `schedule` null: only on request. `keep`: so many verified ones stay. */
export const BackupSettings = z
  .object({
    schedule: z.enum(["daily", "weekly"]).nullable(),
    hourUtc: z.number().int().min(0).max(23),
    keep: z.number().int().min(1).max(60),
  })
  .meta({ id: "BackupSettings" });
export type BackupSettings = z.infer<typeof BackupSettings>;
export const BackupSettingsPatch = z.strictObject({
  ...BackupSettings.partial().shape,
  acceptSmaller: z
    .literal(true)
    .optional()
    .describe(
      "Backups that hold far less than one before are meant so: that one is not kept for them any more.",
    ),
});
export type BackupSettingsPatch = z.infer<typeof BackupSettingsPatch>;

/** As a link was given them; `by`: the key or session that asked for it. */
export const BackupDownloadQuery = z.strictObject({
  expires: z.string().regex(/^\d{1,15}$/),
  by: z.string().regex(/^(key|ses)_[0-9a-z]{1,40}$/),
  signature: z.string().regex(/^[\w-]{43}$/),
});

import * as z from "zod";
import { backupStatuses, backupTriggers, backupTypes } from "../states.ts";
import { CronExpression } from "./schedules.ts";
import { idFilter, listQuery, Timestamp } from "./common.ts";

/** The site's name is that at the time of the backup. */
const BackedUpVolume = z.object({ siteId: z.string(), siteName: z.string(), name: z.string() });

export const Backup = z
  .object({
    id: z.string(),
    databaseId: z.string().nullable().describe("null: of a volume."),
    databaseName: z.string().nullable(),
    volume: BackedUpVolume.nullable().describe("null: of a database."),
    type: z.enum(backupTypes),
    version: z.string().nullable().describe("The version of the backed-up server."),
    status: z
      .enum(backupStatuses)
      .describe("VERIFIED: the backup was restored into a temporary server or folder and found complete."),
    trigger: z.enum(backupTriggers),
    consistent: z
      .boolean()
      .nullable()
      .describe(
        "Whether it is a snapshot of one moment. false: the site could write while it was read. null: not complete yet.",
      ),
    sizeBytes: z.number().int().nullable(),
    sha256: z.string().nullable(),
    tables: z.number().int().nullable(),
    rows: z
      .number()
      .int()
      .nullable()
      .describe("For Redis: the number of keys. For a volume: of files, folders and links."),
    error: z.string().nullable(),
    createdAt: Timestamp,
    finishedAt: Timestamp.nullable(),
    verifiedAt: Timestamp.nullable().describe("When the backup was last verified."),
    expiresAt: Timestamp.nullable().describe(
      "When the backup is deleted; set once its database or volume is deleted.",
    ),
  })
  .meta({ id: "Backup" });
export type Backup = z.infer<typeof Backup>;

/** Also where a list of databases or volumes says it. */
export const BackupsFailing = z
  .object({ since: Timestamp, times: z.number().int(), reason: z.string() })
  .describe("Scheduled backups that failed or could not be verified since the last verified one.");
export type BackupsFailing = z.infer<typeof BackupsFailing>;

/** What has scheduled backups that failed, were damaged or could not be verified, with no verified backup since. */
export const FailingBackups = z
  .object({
    id: z.string().describe("The database's id; for a volume, its site's id, a slash and its name."),
    accountId: z.string(),
    hostId: z.string().nullable(),
    type: z.enum(backupTypes),
    since: Timestamp,
    times: z.number().int(),
    reason: z.string().describe("Why the last backup failed, without row values."),
  })
  .meta({ id: "FailingBackups" });
export type FailingBackups = z.infer<typeof FailingBackups>;

/** The cursor is an id of the list. */
export const FailingBackupsQuery = listQuery("database").extend({
  cursor: z
    .string()
    .regex(/^(db_[0-9a-z]{1,40}|site_[0-9a-z]{1,40}\/[a-z0-9-]{1,63})$/, "a nextCursor of this list")
    .optional(),
});

/** Hidden at once; the file is deleted within minutes, as soon as no host uses it. */
export const BackupDeleted = z.object({ id: z.string(), status: z.literal("DELETING") });
export type BackupDeleted = z.infer<typeof BackupDeleted>;

export const BackupListQuery = listQuery("backup").extend({
  databaseId: idFilter("database"),
  siteId: idFilter("site"),
});
export type BackupListQuery = z.infer<typeof BackupListQuery>;

/** The URL is the credential until it expires or the key or session that requested it ends; ranges are supported. */
export const BackupLink = z.object({ url: z.url(), expiresAt: Timestamp }).meta({ id: "BackupLink" });
export type BackupLink = z.infer<typeof BackupLink>;

/** `schedule` null: on request only. `keep`: how many verified backups to keep. `hourUtc` is for daily and weekly ones. */
export const BackupSettings = z
  .object({
    schedule: z
      .union([z.enum(["daily", "weekly"]), CronExpression])
      .nullable()
      .describe(
        "daily or weekly: in the hour `hourUtc`, at a minute chosen by the service. Or five cron fields in UTC, at most once an hour. null: on request only.",
      ),
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
      "Accept that backups hold far less data than before. The larger backup is no longer kept as a safeguard.",
    ),
});
export type BackupSettingsPatch = z.infer<typeof BackupSettingsPatch>;

/** The parameters of a download URL; `by`: the key or session that requested it. */
export const BackupDownloadQuery = z.strictObject({
  expires: z.string().regex(/^\d{1,15}$/),
  by: z.string().regex(/^(key|ses)_[0-9a-z]{1,40}$/),
  signature: z.string().regex(/^[\w-]{43}$/),
});

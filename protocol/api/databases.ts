import * as z from "zod";
import { billingTermsMonths, databaseStatuses, databaseTypes } from "../states.ts";
import { BackupSettings, BackupSettingsPatch, BackupsFailing } from "./backups.ts";
import { listQuery, text, Timestamp } from "./common.ts";
import { BillingDay, NextBillingTerm, PackChange } from "./packs.ts";
import { PublicAccess, PublicAccessPatch } from "./public-access.ts";
import { EnvKey, regionOfNew } from "./sites.ts";

/** Sites reach the database as `<name>.internal`, so the name must be resolvable. */
export const DatabaseName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9, - and _, the last two not at the ends");

export const DatabaseCreate = z
  .strictObject({
    name: DatabaseName,
    type: z.enum(databaseTypes),
    packId: text.max(100).optional(),
    region: regionOfNew,
    billingTerm: z.literal([...billingTermsMonths]).default(1),
  })
  .meta({ id: "DatabaseCreate" });
export type DatabaseCreate = z.infer<typeof DatabaseCreate>;

export const DatabaseListQuery = listQuery("database").extend({
  status: z.enum(databaseStatuses).optional().describe("Only databases with this status."),
});
export type DatabaseListQuery = z.infer<typeof DatabaseListQuery>;

export const DatabaseRemoveQuery = z.strictObject({
  skipFinalBackup: z
    .enum(["0", "1"])
    .optional()
    .describe("1: take no final backup; earlier backups are kept for 30 days anyway."),
});
export type DatabaseRemoveQuery = z.infer<typeof DatabaseRemoveQuery>;

export const DatabaseCreated = z
  .object({ invoiceToken: z.string(), invoiceId: z.string(), databaseId: z.string() })
  .meta({ id: "DatabaseCreated" });
export type DatabaseCreated = z.infer<typeof DatabaseCreated>;

export const DatabasePatch = z.union(
  [
    z.strictObject({ action: z.enum(["start", "stop", "restart"]) }),
    z.strictObject({ backups: BackupSettingsPatch }),
    z.strictObject({ publicAccess: PublicAccessPatch }),
    PackChange,
  ],
  "exactly one of action, backups, publicAccess and packId",
);
export type DatabasePatch = z.infer<typeof DatabasePatch>;

export const DatabaseActionAccepted = z.object({ id: z.string(), status: z.enum(databaseStatuses) });
export type DatabaseActionAccepted = z.infer<typeof DatabaseActionAccepted>;

export const Database = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(databaseTypes),
    version: z.string().nullable().describe("The version the server reports; null until it first runs."),
    status: z.enum(databaseStatuses),
    error: z.string().nullable().describe("Why the database does not run, or why the last change failed."),
    waitsFor: z
      .string()
      .nullable()
      .describe("Why the requested change is still pending, such as an unreachable host."),
    notice: z
      .string()
      .nullable()
      .describe("Something the owner should act on, such as data that exceeds the pack's disk space."),
    packId: z.string(),
    nextPackId: z
      .string()
      .nullable()
      .describe("The pack it changes to, once the change is paid or at the next renewal."),
    billingTerm: z.number(),
    nextBillingTerm: NextBillingTerm,
    billingDay: BillingDay,
    host: z.string().describe("The host name for the account's sites on the same host."),
    port: z.number(),
    sizeMb: z
      .number()
      .nullable()
      .describe(
        "The disk usage of its data, measured every ten minutes while it runs; null: not measured yet.",
      ),
    databaseName: z.string().nullable().describe("null: the engine identifies databases by number only."),
    username: z.string(),
    restoring: z
      .object({ backupId: z.string(), since: Timestamp })
      .nullable()
      .describe(
        "The pending or active restore. Its result is reported as an event, and a failure as `error`.",
      ),
    rotating: z
      .boolean()
      .describe("A password rotation is in progress; some sites may still use the old password."),
    links: z.array(
      z.object({
        siteId: z.string(),
        variable: z.string(),
        inService: z
          .boolean()
          .describe("Whether the site runs with it; otherwise it does from its next restart or deployment."),
      }),
    ),
    backups: BackupSettings.extend({
      nextAt: Timestamp.nullable(),
      failing: BackupsFailing.nullable(),
    }),
    publicAccess: PublicAccess,
    paidUntil: Timestamp.nullable(),
    region: z.string().nullable(),
    hostId: z.string().nullable(),
    hostOffline: z.boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "Database" });
export type Database = z.infer<typeof Database>;

/** Returned only by the credentials endpoint, to the owner. */
export const DatabaseCredentials = z.object({
  username: z.string(),
  password: z.string(),
  connectionString: z.string(),
  publicAccess: z
    .object({
      connectionString: z
        .string()
        .describe("The connection string with TLS; it names the CA file ca.pem if the scheme supports it."),
      certificateAuthority: z.string().describe("The CA certificate in PEM format that verifies the server."),
    })
    .nullable()
    .describe("The public connection; null while public access is off or not applied yet."),
});
export type DatabaseCredentials = z.infer<typeof DatabaseCredentials>;

export const DatabaseLinkCreate = z.strictObject({
  siteId: text.min(1).max(100),
  variable: EnvKey.optional().describe("Default: DATABASE_URL, or REDIS_URL for a Redis database."),
});
export type DatabaseLinkCreate = z.infer<typeof DatabaseLinkCreate>;

export const DatabaseLink = z
  .object({
    databaseId: z.string(),
    siteId: z.string(),
    variable: z.string(),
    restartRequired: z
      .boolean()
      .describe("The site is running and receives the variable at its next restart or deployment."),
  })
  .meta({ id: "DatabaseLink" });
export type DatabaseLink = z.infer<typeof DatabaseLink>;

/** If omitted, every site. */
export const DatabaseUnlinkQuery = z.strictObject({ siteId: text.min(1).max(100).optional() });
export type DatabaseUnlinkQuery = z.infer<typeof DatabaseUnlinkQuery>;

export const DatabaseUnlinked = z.object({ id: z.string(), unlinked: z.array(z.string()) });
export type DatabaseUnlinked = z.infer<typeof DatabaseUnlinked>;

export const DatabaseRestore = z.strictObject({ backupId: text.min(1).max(100) });
export type DatabaseRestore = z.infer<typeof DatabaseRestore>;

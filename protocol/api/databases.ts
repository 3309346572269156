import * as z from "zod";
import { billingTermsMonths, databaseStatuses, databaseTypes } from "../states.ts";
import { BackupSettings, BackupSettingsPatch } from "./backups.ts";
import { text, Timestamp } from "./common.ts";
import { PackChange } from "./packs.ts";
import { PublicAccess, PublicAccessPatch } from "./public-access.ts";
import { EnvKey, regionOfNew } from "./sites.ts";

/** Sites reach it as `<name>.internal`, so nothing that a resolver does not look up. */
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
    version: z.string().nullable().describe("As the server says it; null before it first ran."),
    status: z.enum(databaseStatuses),
    error: z.string().nullable().describe("Why it does not run, or was not changed as asked."),
    waitsFor: z
      .string()
      .nullable()
      .describe("Why what it was asked for is not done yet: no host has taken it, or its host is silent."),
    notice: z
      .string()
      .nullable()
      .describe("What its owner should do something about, such as data that its pack has no room for."),
    packId: z.string(),
    nextPackId: z
      .string()
      .nullable()
      .describe("What it is to have: when the change is paid, or from the next renewal on."),
    billingTerm: z.number(),
    host: z.string().describe("Its address for the account's sites on the same host."),
    port: z.number(),
    databaseName: z.string().nullable().describe("null: the engine only numbers them."),
    username: z.string(),
    restoring: z
      .object({ backupId: z.string(), since: Timestamp })
      .nullable()
      .describe(
        "The restore that is under way, or waits; how it ended is an event, and a failure the error.",
      ),
    rotating: z
      .boolean()
      .describe("A new password takes the place of another, which some site may still run with."),
    links: z.array(z.object({ siteId: z.string(), variable: z.string() })),
    backups: BackupSettings.extend({
      nextAt: Timestamp.nullable(),
      failing: z
        .object({ since: Timestamp, times: z.number().int(), reason: z.string() })
        .nullable()
        .describe("Planned ones that failed or could not be verified, since the last one that was proven."),
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

/** Shown to the owner, on request only. */
export const DatabaseCredentials = z.object({
  username: z.string(),
  password: z.string(),
  connectionString: z.string(),
  publicAccess: z
    .object({
      connectionString: z
        .string()
        .describe("With TLS; names the certificate authority's file ca.pem where the scheme can."),
      certificateAuthority: z.string().describe("PEM: whom the server's certificate is to be verified with."),
    })
    .nullable()
    .describe("The way in from outside; null while it is off, or its host has not made it yet."),
});
export type DatabaseCredentials = z.infer<typeof DatabaseCredentials>;

export const DatabaseLinkCreate = z.strictObject({
  siteId: text.min(1).max(100),
  variable: EnvKey.optional().describe("Left out: DATABASE_URL, of a redis database REDIS_URL."),
});
export type DatabaseLinkCreate = z.infer<typeof DatabaseLinkCreate>;

export const DatabaseLink = z
  .object({
    databaseId: z.string(),
    siteId: z.string(),
    variable: z.string(),
    restartRequired: z
      .boolean()
      .describe("The site runs, and is given the variable when it is restarted or deployed."),
  })
  .meta({ id: "DatabaseLink" });
export type DatabaseLink = z.infer<typeof DatabaseLink>;

/** Left out: every site. */
export const DatabaseUnlinkQuery = z.strictObject({ siteId: text.min(1).max(100).optional() });
export type DatabaseUnlinkQuery = z.infer<typeof DatabaseUnlinkQuery>;

export const DatabaseUnlinked = z.object({ id: z.string(), unlinked: z.array(z.string()) });
export type DatabaseUnlinked = z.infer<typeof DatabaseUnlinked>;

export const DatabaseRestore = z.strictObject({ backupId: text.min(1).max(100) });
export type DatabaseRestore = z.infer<typeof DatabaseRestore>;

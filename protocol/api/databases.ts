import * as z from "zod";
import { billingTermsMonths, databaseStatuses, databaseTypes } from "../states.ts";
import { Timestamp } from "./common.ts";
import { SiteName } from "./sites.ts";

export const DatabaseCreate = z
  .strictObject({
    name: SiteName,
    type: z.enum(databaseTypes),
    packId: z.string().max(100).optional(),
    billingTerm: z.literal([...billingTermsMonths]).default(1),
  })
  .meta({ id: "DatabaseCreate" });
export type DatabaseCreate = z.infer<typeof DatabaseCreate>;

export const DatabaseCreated = z
  .object({ invoiceToken: z.string(), invoiceId: z.string(), databaseId: z.string() })
  .meta({ id: "DatabaseCreated" });

export const DatabasePatch = z.strictObject({ action: z.enum(["start", "stop", "restart"]) });
export type DatabasePatch = z.infer<typeof DatabasePatch>;

export const DatabaseActionAccepted = z.object({ id: z.string(), status: z.enum(databaseStatuses) });

export const Database = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(databaseTypes),
    version: z.string().nullable(),
    status: z.enum(databaseStatuses),
    packId: z.string(),
    billingTerm: z.number(),
    host: z.string().nullable(),
    port: z.number().nullable(),
    databaseName: z.string().nullable(),
    username: z.string().nullable(),
    paidUntil: Timestamp.nullable(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "Database" });

/** Shown to the owner, on request only. */
export const DatabaseCredentials = z.object({
  username: z.string(),
  password: z.string(),
  connectionString: z.string(),
});

export const Backup = z
  .object({
    id: z.string(),
    databaseId: z.string(),
    status: z.enum(["RUNNING", "STORED", "VERIFIED", "FAILED"]),
    sizeBytes: z.number().int().nullable(),
    createdAt: Timestamp,
  })
  .meta({ id: "Backup" });

export const DatabaseRestore = z.strictObject({ backupId: z.string().min(1).max(100) });

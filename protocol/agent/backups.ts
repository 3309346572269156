import * as z from "zod";
import { idOf } from "../api/common.ts";

/** A backup is transferred between a host and the store in parts of equal size, except the last. */
export const partBytes = 8 * 1024 * 1024;
export const maxParts = 10_000;

/** Identifies the lease; the host itself is identified by its token. */
export const leaseHeaders = { job: "Berth-Job", attempt: "Berth-Attempt" } as const;
/** SHA-256 of a part's bytes, hex. */
export const partHashHeader = "Berth-Part-Sha256";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** An integer that may exceed JavaScript's safe range. */
const Count = z.string().regex(/^-?\d{1,60}$/);

/**
 * The contents of a database at the time of its backup, which a restored copy must match. Checksums are independent of
 * row order.
 */
export const Fingerprint = z.object({
  tables: z.array(z.object({ name: z.string(), rows: Count, checksum: Count })),
  /** Counts of objects other than tables: views, indexes, functions, … */
  objects: z.record(z.string(), Count),
  /** Counters that advance during a backup: the first and last value. */
  counters: z.array(z.object({ name: z.string(), from: Count, to: Count })),
  /** Session defaults and PostgreSQL extensions. Older backups have none. */
  settings: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  extensions: z.array(z.string()).optional(),
});
export type Fingerprint = z.infer<typeof Fingerprint>;

export const UploadStarted = z.object({ uploadId: z.string().min(1) });
export const PartStored = z.object({ etag: z.string().min(1).max(200) });

export const UploadComplete = z.strictObject({
  uploadId: z.string().min(1).max(2000),
  sizeBytes: z.number().int().nonnegative(),
  sha256: Sha256,
  etags: z.array(z.string().min(1).max(200)).min(1).max(maxParts),
  fingerprint: Fingerprint,
});
export type UploadComplete = z.infer<typeof UploadComplete>;

/** Uploaded last: a backup without a manifest does not exist. */
export const Manifest = z.object({
  backupId: idOf("backup"),
  accountId: idOf("account"),
  /** A database's id, or `<site id>/<volume>`. */
  databaseId: z.string().min(1).max(200),
  sizeBytes: z.number().int().nonnegative(),
  sha256: Sha256,
  fingerprint: Fingerprint,
});
export type Manifest = z.infer<typeof Manifest>;

/** The control plane's record of a stored backup. The store alone is not trusted. */
export const StoredBackup = z.object({
  backupId: idOf("backup"),
  attempt: z.number().int().positive(),
  /** Its name on the server that was backed up. */
  databaseName: z.string().regex(/^[a-z][a-z0-9_]{0,55}$/),
  sizeBytes: z.number().int().nonnegative(),
  sha256: Sha256,
  /** SHA-256 of the fingerprint's canonical text. */
  fingerprintSha256: Sha256,
});
export type StoredBackup = z.infer<typeof StoredBackup>;

/** The same of a volume. */
export const StoredVolume = StoredBackup.omit({ databaseName: true });
export type StoredVolume = z.infer<typeof StoredVolume>;

/** The canonical text of a fingerprint, for hashing. */
export const fingerprintText = ({ tables, objects, counters, settings, extensions }: Fingerprint): string =>
  JSON.stringify([
    tables.map(({ name, rows, checksum }) => [name, rows, checksum]),
    Object.entries(objects).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    counters.map(({ name, from, to }) => [name, from, to]),
    ...(settings === undefined ? [] : [settings.map(({ name, value }) => [name, value])]),
    ...(extensions === undefined ? [] : [extensions]),
  ]);

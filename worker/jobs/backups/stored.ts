import { and, eq, sql, type SQL } from "drizzle-orm";
import type { StoredBackup, StoredVolume } from "../../../protocol/agent/backups.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { BackupRow } from "../../db/rows.ts";
import { backups } from "../../db/schema.ts";

/** A backup in the form in which a host reads it. @throws Error if it is not in the store */
export function storedOf(row: BackupRow, attempt: number): StoredBackup {
  const { id: backupId, databaseName, sizeBytes, sha256, fingerprintSha256 } = row;
  if (sizeBytes === null || sha256 === null || fingerprintSha256 === null)
    throw new Error(`Backup ${backupId} is not in the store`);
  return { backupId, attempt, databaseName, sizeBytes, sha256, fingerprintSha256 };
}

/** The same of a volume. */
export function storedVolumeOf(row: BackupRow, attempt: number): StoredVolume {
  const { databaseName: _, ...stored } = storedOf(row, attempt);
  return stored;
}

/** Records that a verification found the stored data damaged. */
export const damaged = (ctx: Ctx, id: Id<"backup">, error: string, ended: SQL) =>
  ctx.db
    .update(backups)
    .set({ status: "FAILED", error, finishedAt: ctx.now() })
    .where(and(eq(backups.id, id), sql`${backups.status} IN ('STORED', 'VERIFIED')`, ended));

/**
 * A restore failed because of the backup, which is verified again: the server that it was restored into may differ from
 * the one that was backed up.
 */
export const doubted = (ctx: Ctx, id: Id<"backup">, error: string, ended: SQL) =>
  ctx.db
    .update(backups)
    .set({ status: "STORED", error, finishedAt: ctx.now() })
    .where(and(eq(backups.id, id), sql`${backups.status} IN ('STORED', 'VERIFIED')`, ended));

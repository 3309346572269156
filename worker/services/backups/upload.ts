import { and, eq, sql } from "drizzle-orm";
import {
  fingerprintText,
  maxParts,
  partBytes,
  type Manifest,
  type UploadComplete,
} from "../../../protocol/agent/backups.ts";
import type { Ctx } from "../../ctx.ts";
import { backups } from "../../db/schema.ts";
import { AppError, conflict, invalid } from "../../domain/app-error.ts";
import { sha256Hex } from "../../domain/tokens.ts";
import { dataKeyOf, manifestKeyOf } from "../../jobs/backups/object-keys.ts";
import { leasedBackup, type LeaseClaim } from "./leased.ts";

const uploads = ["database.backup", "volume.backup"] as const;

/** Starts this attempt's upload, and aborts the unfinished upload of an earlier attempt. */
export async function beginUpload(
  ctx: Ctx,
  backupId: string,
  claim: LeaseClaim,
): Promise<{ uploadId: string }> {
  const { backup, attempt } = await leasedBackup(ctx, backupId, claim, uploads);
  if (backup.uploadId !== null) await ctx.backups.abort(dataKeyOf(backup), backup.uploadId);
  const uploadId = await ctx.backups.begin(dataKeyOf({ ...backup, attempt }));
  const [begun] = await ctx.db
    .update(backups)
    .set({ uploadId, attempt, sha256: null })
    .where(and(eq(backups.id, backup.id), eq(backups.status, "RUNNING")))
    .returning({ id: backups.id });
  if (!begun) throw conflict(`This backup is ${backup.status} and accepts no upload.`);
  return { uploadId };
}

/** Uploads one part; the same number again replaces it. */
export async function storePart(
  ctx: Ctx,
  backupId: string,
  claim: LeaseClaim,
  part: { number: number; sha256: string; bytes: ArrayBuffer },
): Promise<{ etag: string }> {
  if (!Number.isInteger(part.number) || part.number < 1 || part.number > maxParts)
    throw invalid("part", `a number from 1 to ${maxParts}`);
  if (part.bytes.byteLength > partBytes) throw new AppError("payload_too_large");
  const [{ backup, attempt }, digest] = await Promise.all([
    leasedBackup(ctx, backupId, claim, uploads),
    crypto.subtle.digest("SHA-256", part.bytes),
  ]);
  if (Buffer.from(digest).toString("hex") !== part.sha256)
    throw invalid("part", "does not match its SHA-256: send it again");
  if (backup.uploadId === null || backup.attempt !== attempt) throw conflict("No upload is in progress.");
  const etag = await ctx.backups.putPart(dataKeyOf(backup), backup.uploadId, part.number, part.bytes);
  return { etag };
}

/** Combines the parts into one object of the announced length, writes the manifest, then updates the record. */
export async function completeUpload(
  ctx: Ctx,
  backupId: string,
  claim: LeaseClaim,
  done: UploadComplete,
): Promise<void> {
  const { backup, attempt } = await leasedBackup(ctx, backupId, claim, uploads);
  if (backup.attempt !== attempt || backup.uploadId !== done.uploadId)
    throw conflict("This is not the upload in progress.");
  const { sizeBytes, sha256, fingerprint } = done;
  await ctx.backups.complete(dataKeyOf(backup), done.uploadId, done.etags, sizeBytes);
  const { id, accountId, databaseId } = backup;
  const manifest: Manifest = { backupId: id, accountId, databaseId, sizeBytes, sha256, fingerprint };
  await ctx.backups.write(manifestKeyOf(backup), JSON.stringify(manifest));
  // PostgreSQL's fingerprint has its large objects among the tables.
  const tables = fingerprint.tables.filter(({ name }) => name !== "large objects");
  await ctx.db
    .update(backups)
    .set({
      sizeBytes,
      sha256,
      fingerprintSha256: sha256Hex(fingerprintText(fingerprint)),
      tables: tables.length,
      rows: tables.reduce((sum, { rows }) => sum + Number(rows), 0),
    })
    .where(
      and(
        eq(backups.id, id),
        eq(backups.status, "RUNNING"),
        eq(backups.attempt, attempt),
        sql`EXISTS (SELECT 1 FROM jobs WHERE id = ${claim.jobId} AND attempt = ${attempt} AND status = 'LEASED')`,
      ),
    );
}

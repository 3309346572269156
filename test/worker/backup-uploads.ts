import { createHash } from "node:crypto";
import { expect } from "vitest";
import { type Fingerprint, leaseHeaders, partHashHeader } from "../../protocol/agent/backups.ts";
import type { Job, JobKind } from "../../protocol/agent/jobs.ts";
import { call } from "./service.ts";

type Uploader = { token: { id: string; token: string } };
type BackupKind = "database.backup" | "volume.backup";
export type Taken<K extends JobKind> = { job: Job<K>; attempt: number };

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
export const fingerprint = {
  tables: [
    { name: "items", rows: "3", checksum: "12345678901234567890" },
    { name: "large objects", rows: "2", checksum: "1" },
  ],
  objects: { views: "1" },
  counters: [],
};

/** What an agent's request for a leased job carries. */
export const from = (on: Uploader, { job, attempt }: Taken<JobKind>, also: Record<string, string> = {}) => ({
  Authorization: `Bearer ${on.token.token}`,
  [leaseHeaders.job]: job.id,
  [leaseHeaders.attempt]: String(attempt),
  ...also,
});
export const putPart = (on: Uploader, taken: Taken<BackupKind>, text: string, also: object = {}, part = 1) =>
  call(`/agent/backups/${taken.job.args.backupId}/parts/${part}`, {
    method: "PUT",
    headers: { ...from(on, taken, { [partHashHeader]: sha256(text) }), ...also },
    body: text,
  });
export const begin = (on: Uploader, taken: Taken<BackupKind>) =>
  call(`/agent/backups/${taken.job.args.backupId}/upload`, { method: "POST", headers: from(on, taken) });
export const complete = (on: Uploader, taken: Taken<BackupKind>, done: object) =>
  call(`/agent/backups/${taken.job.args.backupId}/complete`, {
    method: "POST",
    headers: from(on, taken, { "Content-Type": "application/json" }),
    body: JSON.stringify(done),
  });

/** The host stores a backup of this text. */
export async function upload(
  on: Uploader,
  taken: Taken<BackupKind>,
  text: string,
  held: Fingerprint = fingerprint,
): Promise<void> {
  const { uploadId } = await (await begin(on, taken)).json<{ uploadId: string }>();
  const { etag } = await (await putPart(on, taken, text)).json<{ etag: string }>();
  const done = { uploadId, sizeBytes: text.length, sha256: sha256(text), etags: [etag], fingerprint: held };
  expect((await complete(on, taken, done)).status).toBe(200);
  // An answer that was lost is asked for again.
  expect((await complete(on, taken, done)).status).toBe(200);
}

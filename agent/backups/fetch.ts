import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  fingerprintText,
  Manifest,
  type Fingerprint,
  type StoredBackup,
} from "../../protocol/agent/backups.ts";
import { DamageError } from "./damage.ts";
import { persist, StoreError, type BackupStore, type StoreLease } from "./store.ts";

const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Connections in a row that broke without a byte. */
const barrenMax = 20;

/**
 * The backup's bytes, taken up where a connection broke. After the last one, length and SHA-256 were those of the record.
 * @throws DamageError when they were not
 */
export async function* fetchBackup(
  store: BackupStore,
  lease: StoreLease,
  { sizeBytes, sha256 }: StoredBackup,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const whole = createHash("sha256");
  let offset = 0;
  for (let barren = 0; offset < sizeBytes;) {
    const { totalBytes, body } = await persist(() => store.read(lease, offset, signal), signal).catch(
      (error: unknown) => {
        if (error instanceof StoreError && error.status === 404)
          throw new DamageError("Its file is not in the store.");
        if (error instanceof StoreError && error.status === 416)
          throw new DamageError(`Its file is shorter than the ${sizeBytes} bytes that were stored.`);
        throw error;
      },
    );
    if (totalBytes !== sizeBytes)
      throw new DamageError(`Its file is ${totalBytes} bytes, but ${sizeBytes} were stored.`);
    const before = offset;
    try {
      for await (const chunk of body) {
        whole.update(chunk);
        offset += chunk.length;
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      barren = offset > before ? 0 : barren + 1;
      if (barren >= barrenMax) throw error;
      await delay(250 * (barren + 1), undefined, { signal });
    }
  }
  if (whole.digest("hex") !== sha256)
    throw new DamageError("Its file is not what was stored: its SHA-256 differs.");
}

/** What the database held, from the manifest, which must be the one the record knows. @throws DamageError */
export async function fetchFingerprint(
  store: BackupStore,
  lease: StoreLease,
  { backupId, fingerprintSha256 }: StoredBackup,
  signal: AbortSignal,
): Promise<Fingerprint> {
  const answer = await store.manifest(lease, signal).catch((error: unknown) => {
    if (error instanceof StoreError && error.status === 404)
      throw new DamageError("Its manifest is not in the store.");
    if (error instanceof SyntaxError) throw new DamageError("Its manifest cannot be read.");
    throw error;
  });
  const manifest = Manifest.safeParse(answer);
  if (!manifest.success) throw new DamageError("Its manifest cannot be read.");
  const { fingerprint } = manifest.data;
  if (manifest.data.backupId !== backupId || sha256Of(fingerprintText(fingerprint)) !== fingerprintSha256)
    throw new DamageError("Its manifest is not the one that was stored.");
  return fingerprint;
}

import { createHash } from "node:crypto";
import {
  fingerprintText,
  Manifest,
  type Fingerprint,
  type StoredVolume,
} from "../../../protocol/agent/backups.ts";
import { DamageError } from "./damage.ts";
import { clocked } from "./patience.ts";
import {
  firstPauseMs,
  longestPauseMs,
  pause,
  persist,
  StoreError,
  type BackupStore,
  type StoreLease,
} from "./store.ts";

const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex");

const reads = (store: BackupStore, signal: AbortSignal) =>
  clocked(signal, store.patienceMs.reading, "sent no bytes of this backup");

/**
 * The backup's bytes, resumed after broken connections. Length and SHA-256 are checked against the record at the end.
 * @throws DamageError if they differ, JobError if no byte has arrived for too long
 */
export async function* fetchBackup(
  store: BackupStore,
  lease: StoreLease,
  { sizeBytes, sha256 }: StoredVolume,
  whole: AbortSignal,
): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  const clock = reads(store, whole);
  const { signal } = clock;
  let offset = 0;
  let isWithConsumer = false;
  try {
    for (let pauseMs = firstPauseMs; offset < sizeBytes; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
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
      try {
        for await (const chunk of body) {
          hash.update(chunk);
          offset += chunk.length;
          pauseMs = firstPauseMs;
          // The consumer's time does not count as the store's.
          clock.stop();
          isWithConsumer = true;
          yield chunk;
          isWithConsumer = false;
          clock.begin();
        }
      } catch (error) {
        // A stream that is left off throws it in here: no connection broke.
        if (isWithConsumer) throw error;
        signal.throwIfAborted();
      }
      if (offset < sizeBytes) await pause(pauseMs, signal);
    }
  } finally {
    clock.stop();
  }
  if (hash.digest("hex") !== sha256)
    throw new DamageError("Its file is not the one that was stored: its SHA-256 differs.");
}

/** The database's content according to the manifest, which must be the recorded one. @throws DamageError */
export async function fetchFingerprint(
  store: BackupStore,
  lease: StoreLease,
  { backupId, fingerprintSha256 }: StoredVolume,
  signal: AbortSignal,
): Promise<Fingerprint> {
  const clock = reads(store, signal);
  const asked = persist(() => store.manifest(lease, clock.signal), clock.signal).finally(clock.stop);
  const answer = await asked.catch((error: unknown) => {
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

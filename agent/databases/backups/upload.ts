import { createHash } from "node:crypto";
import { maxParts, partBytes } from "../../../protocol/agent/backups.ts";
import { JobError } from "../../job.ts";
import type { BackupStore, StoreLease } from "./store.ts";

const maxGib = Math.floor((maxParts * partBytes) / 1024 ** 3);

export type Uploaded = { uploadId: string; sizeBytes: number; sha256: string; etags: string[] };

/**
 * Uploads in parts, filling the next part meanwhile: at most two parts are in memory, and the source waits for the
 * store.
 */
export async function uploadParts(
  store: BackupStore,
  lease: StoreLease,
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<Uploaded> {
  const uploadId = await store.begin(lease, signal);
  const whole = createHash("sha256");
  const etags: string[] = [];
  let [filling, spare] = [Buffer.allocUnsafe(partBytes), Buffer.allocUnsafe(partBytes)];
  let filled = 0;
  let sizeBytes = 0;
  let underWay: Promise<void> = Promise.resolve();

  const send = async () => {
    await underWay;
    const number = etags.length + 1;
    if (number > maxParts) throw new JobError(`It is larger than a backup can be: ${maxGib} GiB.`);
    const bytes = filling.subarray(0, filled);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    underWay = store.put(lease, { number, bytes, sha256 }, signal).then((etag) => void etags.push(etag));
    // Its failure is handled at the next part, or at the end.
    underWay.catch(() => undefined);
    [filling, spare] = [spare, filling];
    filled = 0;
  };

  try {
    for await (const chunk of source) {
      signal.throwIfAborted();
      whole.update(chunk);
      sizeBytes += chunk.length;
      for (let at = 0; at < chunk.length;) {
        const taken = chunk.copy(filling, filled, at);
        at += taken;
        filled += taken;
        if (filled === partBytes) await send();
      }
    }
    if (sizeBytes === 0) throw new JobError("The copy is empty: try again.");
    if (filled > 0) await send();
  } finally {
    await underWay.catch(() => undefined);
  }
  await underWay;
  return { uploadId, sizeBytes, sha256: whole.digest("hex"), etags };
}

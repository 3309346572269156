/** The store for backups: R2, or a local disk under `npm start`. */
export type BackupStore = {
  /** Starts a multipart upload and returns its name. */
  begin(key: string): Promise<string>;
  /** Uploading the same part number again replaces the part. */
  putPart(key: string, uploadId: string, part: number, bytes: ArrayBuffer): Promise<string>;
  /** Combines the parts into one object. Repeating it only verifies the size. @throws if the size differs */
  complete(key: string, uploadId: string, etags: readonly string[], sizeBytes: number): Promise<void>;
  abort(key: string, uploadId: string): Promise<void>;
  write(key: string, text: string): Promise<void>;
  sizeOf(key: string): Promise<number | null>;
  read(key: string, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null>;
  /** All objects whose key has this prefix. */
  remove(prefix: string): Promise<void>;
};

export function backupStore(bucket: R2Bucket): BackupStore {
  const sizeOf = async (key: string) => (await bucket.head(key))?.size ?? null;
  return {
    sizeOf,
    begin: async (key) => (await bucket.createMultipartUpload(key)).uploadId,
    putPart: async (key, uploadId, part, bytes) =>
      (await bucket.resumeMultipartUpload(key, uploadId).uploadPart(part, bytes)).etag,
    async complete(key, uploadId, etags, sizeBytes) {
      const parts = etags.map((etag, index) => ({ partNumber: index + 1, etag }));
      // If the first answer was lost, the object exists and the upload does not.
      if ((await sizeOf(key)) === null) await bucket.resumeMultipartUpload(key, uploadId).complete(parts);
      const stored = await sizeOf(key);
      if (stored !== sizeBytes) {
        await bucket.delete(key);
        throw new Error(`${key} is ${stored} bytes in the store, not ${sizeBytes}`);
      }
    },
    // An upload that was completed, aborted or has expired no longer exists.
    abort: (key, uploadId) =>
      bucket
        .resumeMultipartUpload(key, uploadId)
        .abort()
        .catch(() => undefined),
    write: async (key, text) => void (await bucket.put(key, text)),
    read: async (key, range) => (await bucket.get(key, range && { range }))?.body ?? null,
    async remove(prefix) {
      for (;;) {
        const { objects, truncated } = await bucket.list({ prefix });
        if (objects.length > 0) await bucket.delete(objects.map(({ key }) => key));
        if (!truncated) return;
      }
    },
  };
}

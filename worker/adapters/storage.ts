/** Where backups lie: R2, or a disk of this machine under `npm start`. */
export type BackupStore = {
  /** Begins an upload in parts; its name. */
  begin(key: string): Promise<string>;
  /** The same number again replaces the part. */
  putPart(key: string, uploadId: string, part: number, bytes: ArrayBuffer): Promise<string>;
  /** Makes the parts one object. Done again after it was done, it only looks. @throws when it is not of this size */
  complete(key: string, uploadId: string, etags: readonly string[], sizeBytes: number): Promise<void>;
  abort(key: string, uploadId: string): Promise<void>;
  write(key: string, text: string): Promise<void>;
  sizeOf(key: string): Promise<number | null>;
  read(key: string, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | null>;
  /** Every object whose key begins so. */
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
      // A first answer that was lost left the object, and no upload.
      if ((await sizeOf(key)) === null) await bucket.resumeMultipartUpload(key, uploadId).complete(parts);
      const stored = await sizeOf(key);
      if (stored !== sizeBytes) {
        await bucket.delete(key);
        throw new Error(`${key} is ${stored} bytes in the store, not ${sizeBytes}`);
      }
    },
    // One that is complete, aborted or long forgotten is no upload any more.
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

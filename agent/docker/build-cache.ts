/** A record of `GET /system/df` (Docker Engine API 1.42). */
export type CacheRecord = { Type: string; Description: string; Size: number };

/**
 * Bytes in the cache mounts of builds with this `BUILDKIT_CACHE_MOUNT_NS`. BuildKit ends their description with the mount's
 * id, quoted, which begins with the namespace; what precedes it is the tenant's own text.
 */
export function cacheBytesOf(records: readonly CacheRecord[], namespace: string): number {
  return records.reduce((sum, { Type, Description, Size }) => {
    const [, id] = / with id "((?:[^"\\]|\\.)*)"$/s.exec(Description) ?? [];
    return Type === "exec.cachemount" && id?.startsWith(`${namespace}/`) ? sum + Size : sum;
  }, 0);
}

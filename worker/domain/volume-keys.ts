import type { Id } from "../../protocol/ids.ts";

/** A volume of a site where a database's id stands otherwise; a volume's name contains no `/`. */
export type VolumeKey = `${Id<"site">}/${string}`;

export const volumeKey = (siteId: Id<"site">, name: string): VolumeKey => `${siteId}/${name}`;

/** null: it is a database's id. */
export function volumeOf(key: string): { siteId: Id<"site">; name: string } | null {
  const [siteId, name] = key.split("/");
  return name === undefined ? null : { siteId: siteId as Id<"site">, name };
}

/** The keys of a site's volumes are those between the two: `0` follows `/`. */
export const volumeKeysOf = (siteId: Id<"site">): readonly [VolumeKey, VolumeKey] => [
  `${siteId}/`,
  `${siteId}0` as VolumeKey,
];

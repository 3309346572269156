/** Kind → id prefix. An id is `<prefix>_<shard><ULID>`: opaque, url-safe, sortable by time within its shard. */
export const idPrefixes = {
  account: "acc",
  session: "ses",
  identity: "idn",
  verification: "ver",
  site: "site",
  database: "db",
  deployment: "dep",
  domain: "dom",
  command: "cmd",
  schedule: "sch",
  backup: "bak",
  host: "host",
  job: "job",
  key: "key",
  pack: "pack",
  creditPackage: "cpk",
  invoice: "invoice",
  payment: "pay",
  checkout: "chk",
  refund: "rfd",
  dispute: "dsp",
  flag: "flag",
  transaction: "tx",
  conversation: "conv",
  message: "msg",
  activity: "act",
  channel: "nch",
  delivery: "ntf",
} as const;
export type IdKind = keyof typeof idPrefixes;
export type Id<K extends IdKind = IdKind> = `${(typeof idPrefixes)[K]}_${string}`;

/** Crockford base 32, lower case (https://github.com/ulid/spec). */
const crockford = "0123456789abcdefghjkmnpqrstvwxyz";

/** There is one shard today; the character routes an id to its D1 database without a lookup. */
export const defaultShard = "0";

/**
 * @param nowMs    milliseconds since the epoch, below 2^48
 * @param random   at least 10 random bytes
 */
export function formatId<K extends IdKind>(
  kind: K,
  nowMs: number,
  random: Uint8Array,
  shard = defaultShard,
): Id<K> {
  let time = "";
  for (let rest = nowMs, digit = 0; digit < 10; digit++) {
    time = crockford.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let noise = "";
  let bits = 0;
  let buffer = 0;
  for (const byte of random.subarray(0, 10)) {
    buffer = (buffer << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) noise += crockford.charAt((buffer >> (bits - 5)) & 31);
    buffer &= (1 << bits) - 1;
  }
  return `${idPrefixes[kind]}_${shard}${time}${noise}`;
}

/** Matches exactly the ids that `formatId` creates for this kind. */
export const idPattern = (kind: IdKind): RegExp =>
  new RegExp(`^${idPrefixes[kind]}_[0-9a-z][${crockford}]{26}$`);

/** The only way to turn an untrusted string into an id. */
export const isId = <K extends IdKind>(kind: K, text: string): text is Id<K> => idPattern(kind).test(text);

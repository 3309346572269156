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
export function formatId<K extends IdKind>(kind: K, nowMs: number, random: Uint8Array): Id<K> {
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
  return `${idPrefixes[kind]}_${defaultShard}${time}${noise}`;
}

const dayMs = 86_400_000;

/**
 * Mints ids that sort as they are minted, also within a millisecond, in which a Worker may do all of a request, and after the clock was put
 * back by less than a day: as ULID's monotonic ones, but by steps that nobody can guess.
 * @param random   that many random bytes
 */
export function growingIds(
  nowMs: () => number,
  random: (bytes: number) => Uint8Array,
): <K extends IdKind>(kind: K) => Id<K> {
  let lastMs: number | undefined;
  const noise = new Uint8Array(10);
  return (kind) => {
    const ms = nowMs();
    if (lastMs !== undefined && ms <= lastMs && lastMs - ms < dayMs) add(noise, random(5));
    else {
      lastMs = ms;
      noise.set(random(10));
      // Room for 2^39 steps.
      noise[0] = (noise[0] ?? 0) & 0x7f;
    }
    return formatId(kind, lastMs, noise);
  };
}

/** Adds the step and one to a longer number in place, both big-endian. */
function add(number: Uint8Array, step: Uint8Array): void {
  let carry = 1;
  for (let fromEnd = 1; fromEnd <= number.length; fromEnd++) {
    const sum = (number.at(-fromEnd) ?? 0) + (step.at(-fromEnd) ?? 0) + carry;
    number[number.length - fromEnd] = sum & 0xff;
    carry = sum >> 8;
  }
}

/** Matches exactly the ids that `formatId` creates for this kind. */
export const idPattern = (kind: IdKind): RegExp =>
  new RegExp(`^${idPrefixes[kind]}_[0-9a-z][${crockford}]{26}$`);

/** The only way to turn an untrusted string into an id. */
export const isId = <K extends IdKind>(kind: K, text: string): text is Id<K> => idPattern(kind).test(text);

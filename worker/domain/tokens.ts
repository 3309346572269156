import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { defaultShard } from "../../protocol/ids.ts";

const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Big-endian base 62, left-padded to a fixed length so that all tokens of a kind have the same length. */
export function base62(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (; value > 0n; value /= 62n) text = base62Digits.charAt(Number(value % 62n)) + text;
  return text.padStart(Math.ceil((bytes.length * 8) / Math.log2(62)), "0");
}

export const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

export type KeyPurpose =
  | "api-key-check"
  | "deploy-webhook"
  | "backup-link"
  | "sessions"
  | "known-device"
  | "confirm-statement"
  | "key-id"
  | "oauth"
  | "secret-box-encrypt"
  | "secret-box-authenticate";

/** Derives 32 bytes for one purpose from the installation's secret (HKDF-SHA-256, RFC 5869). */
export const deriveKey = (secretKey: string, purpose: KeyPurpose): Uint8Array<ArrayBuffer> =>
  new Uint8Array(hkdfSync("sha256", Buffer.from(secretKey, "base64url"), "", `berth:${purpose}`, 32));

const signingKeys = new WeakMap<Uint8Array, ReturnType<typeof crypto.subtle.importKey>>();

/** Web Crypto with a key imported once: in workerd, node:crypto's HMAC costs a third of a whole request. */
async function checkOf(checkKey: Uint8Array<ArrayBuffer>, body: string): Promise<string> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  let key = signingKeys.get(checkKey);
  if (!key)
    signingKeys.set(checkKey, (key = crypto.subtle.importKey("raw", checkKey, algorithm, false, ["sign"])));
  const tag = await crypto.subtle.sign("HMAC", await key, new TextEncoder().encode(body));
  return base62(new Uint8Array(tag, 0, 5)).slice(0, 6);
}

/** `sk_` + shard + 256 random bits + a keyed check part. */
export async function mintApiKey(random32: Uint8Array, checkKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const body = `sk_${defaultShard}${base62(random32)}`;
  return body + (await checkOf(checkKey, body));
}

type CheckKeys = readonly Uint8Array<ArrayBuffer>[];

async function isChecked(token: string, checkKeys: CheckKeys): Promise<boolean> {
  for (const checkKey of checkKeys) {
    const expected = await checkOf(checkKey, token.slice(0, -6));
    if (timingSafeEqual(Buffer.from(expected), Buffer.from(token.slice(-6)))) return true;
  }
  return false;
}

const apiKeyPattern = /^sk_[0-9a-z][0-9A-Za-z]{43}[0-9A-Za-z]{6}$/;

/** Whether this installation issued the key: forged and mistyped keys are rejected without a storage read. */
export const isOwnApiKey = async (key: string, checkKeys: CheckKeys): Promise<boolean> =>
  apiKeyPattern.test(key) && (await isChecked(key, checkKeys));

/** An unguessable token with its prefix and shard: invoice tokens, host tokens. */
export const mintToken = (prefix: "inv" | "hst", random32: Uint8Array): string =>
  `${prefix}_${defaultShard}${base62(random32)}`;

/**
 * The secret path segment of a site's deploy webhook, with a keyed checksum. It is derived instead of stored, so that
 * it can be shown again; incrementing the generation creates a new one.
 */
export async function webhookSegment(
  webhookKey: Uint8Array<ArrayBuffer>,
  siteId: string,
  generation: number,
): Promise<string> {
  const secret = createHmac("sha256", webhookKey).update(`${siteId}:${generation}`).digest();
  const body = `whk_${defaultShard}${base62(secret)}`;
  return body + (await checkOf(webhookKey, body));
}

export const webhookPattern = /^whk_[0-9a-z][0-9A-Za-z]{49}$/;

/**
 * Whether this installation issued the segment, according to its current keys. A segment issued under a lost key may
 * still be valid.
 */
export const isOwnWebhook = async (segment: string, webhookKeys: CheckKeys): Promise<boolean> =>
  webhookPattern.test(segment) && (await isChecked(segment, webhookKeys));

/** The stored hash of a segment. */
export const webhookHash = (segment: string): string => sha256Hex(segment);

/** The hash stored initially, without the checksum, so that the checksum alone reveals nothing. */
export const earlierWebhookHash = (segment: string): string => sha256Hex(segment.slice(0, 48));

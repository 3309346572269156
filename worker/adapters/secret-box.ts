import { aes256CbcDecrypt, aes256CbcEncrypt, hmacSha256, isTag, refusal } from "../domain/ciphers.ts";
import type { SealedFor } from "../domain/sealed-places.ts";
import { deriveKey } from "../domain/tokens.ts";

/** Seals text for one place and row; opening it for any other fails. */
export type SecretBox = {
  seal(plain: string, place: SealedFor): string;
  open(sealed: string, place: SealedFor): string;
  /** Whether it was sealed with the current key. */
  isCurrent(sealed: string): boolean;
  /** The ids of the keys, the one that seals first. */
  keyIds: readonly [string, ...string[]];
};

/**
 * Encrypt-then-MAC: `v2.<key id>.` + base64url(iv ‖ ciphertext ‖ HMAC over version, key id, place, iv and ciphertext).
 * Seals with the first key and opens with any.
 */
export function secretBox(
  secretKeys: readonly [string, ...string[]],
  random: (bytes: number) => Uint8Array,
): SecretBox {
  const [current, ...older] = secretKeys;
  const newest = ringKey(current);
  const ring = [newest, ...older.map(ringKey)];
  return {
    keyIds: [newest.id, ...ring.slice(1).map(({ id }) => id)],
    seal(plain, place) {
      const iv = random(16);
      const body = Buffer.concat([iv, aes256CbcEncrypt(newest.cipher, iv, Buffer.from(plain))]);
      const head = `v2.${newest.id}`;
      return `${head}.${Buffer.concat([body, tagOf(newest, `${head}:${place}`, body)]).toString("base64url")}`;
    },
    open(sealed, place) {
      const [version, id, text = "", ...more] = sealed.split(".");
      const bytes = Buffer.from(text, "base64url");
      // Several base64url texts decode to the same bytes; only the canonical one is accepted.
      if (bytes.toString("base64url") !== text || bytes.length < 16 + 16 + 32) throw refusal();
      if (version !== "v2" || more.length > 0) throw refusal();
      const body = bytes.subarray(0, -32);
      const key = ring.find((one) => one.id === id);
      if (!key || !isTag(bytes.subarray(-32), tagOf(key, `v2.${id}:${place}`, body))) throw refusal();
      return Buffer.from(aes256CbcDecrypt(key.cipher, body.subarray(0, 16), body.subarray(16))).toString();
    },
    isCurrent: (sealed) => sealed.startsWith(`v2.${newest.id}.`),
  };
}

type RingKey = { id: string; cipher: Uint8Array; mac: Uint8Array };

const ringKey = (secretKey: string): RingKey => ({
  id: Buffer.from(deriveKey(secretKey, "key-id").subarray(0, 6)).toString("base64url"),
  cipher: deriveKey(secretKey, "secret-box-encrypt"),
  mac: deriveKey(secretKey, "secret-box-authenticate"),
});

function tagOf(key: RingKey, binding: string, body: Uint8Array): Uint8Array {
  const bound = Buffer.from(binding);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bound.length);
  return hmacSha256(key.mac, length, bound, body);
}

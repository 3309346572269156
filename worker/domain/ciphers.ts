import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from "node:crypto";

/**
 * Primitives on bytes that follow their standards, so that published test vectors apply. A key or IV of the wrong
 * length is a caller's error; every failure to open a value has the same message.
 */

export const refusal = () => new Error("A sealed value could not be opened");

function requireLength(what: string, bytes: Uint8Array, length: number): void {
  if (bytes.length !== length) throw new TypeError(`${what} has ${bytes.length} bytes instead of ${length}`);
}

/** AES-256-CBC with PKCS #7 padding (NIST SP 800-38A §6.2). */
export function aes256CbcEncrypt(key: Uint8Array, iv: Uint8Array, plain: Uint8Array): Uint8Array {
  requireLength("The key", key, 32);
  requireLength("The IV", iv, 16);
  const cipher = createCipheriv("aes-256-cbc", key, iv);
  return Buffer.concat([cipher.update(plain), cipher.final()]);
}

/** Only for ciphertext that a MAC has authenticated: padding errors leak information to an attacker. @throws refusal */
export function aes256CbcDecrypt(key: Uint8Array, iv: Uint8Array, sealed: Uint8Array): Uint8Array {
  requireLength("The key", key, 32);
  requireLength("The IV", iv, 16);
  if (sealed.length === 0 || sealed.length % 16 !== 0) throw refusal();
  const decipher = createDecipheriv("aes-256-cbc", key, iv);
  try {
    return Buffer.concat([decipher.update(sealed), decipher.final()]);
  } catch {
    throw refusal();
  }
}

/** HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the concatenated parts. */
export function hmacSha256(key: Uint8Array, ...parts: Uint8Array[]): Uint8Array {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

/** Constant-time comparison; a truncated tag is invalid. */
export const isTag = (tag: Uint8Array, expected: Uint8Array): boolean =>
  tag.length === expected.length && timingSafeEqual(tag, expected);

import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from "node:crypto";
import { deriveKey } from "../domain/tokens.ts";

/** AES-256-CBC with PKCS #7 padding (NIST SP 800-38A §6.2). */
export function aes256CbcEncrypt(key: Uint8Array, iv: Uint8Array, plain: Uint8Array): Uint8Array {
  const cipher = createCipheriv("aes-256-cbc", key, iv);
  return Buffer.concat([cipher.update(plain), cipher.final()]);
}

export function aes256CbcDecrypt(key: Uint8Array, iv: Uint8Array, sealed: Uint8Array): Uint8Array {
  const decipher = createDecipheriv("aes-256-cbc", key, iv);
  return Buffer.concat([decipher.update(sealed), decipher.final()]);
}

export const hmacSha256 = (key: Uint8Array, ...parts: Uint8Array[]): Uint8Array => {
  const hmac = createHmac("sha256", key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
};

/** Seals text for one place (`context`: table, column and row id); opening it anywhere else fails. */
export type SecretBox = {
  seal(plain: string, context: string): string;
  open(sealed: string, context: string): string;
};

const refusal = () => new Error("A sealed value could not be opened");

/** Encrypt-then-MAC: `v1.` + base64url(iv ‖ ciphertext ‖ HMAC over version, context, iv and ciphertext). */
export function secretBox(secretKey: string, random: (bytes: number) => Uint8Array): SecretBox {
  const encryptKey = deriveKey(secretKey, "secret-box-encrypt");
  const macKey = deriveKey(secretKey, "secret-box-authenticate");
  const tagOf = (context: string, body: Uint8Array) => {
    const bound = Buffer.from(`v1:${context}`);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bound.length);
    return hmacSha256(macKey, length, bound, body);
  };
  return {
    seal(plain, context) {
      const iv = random(16);
      const body = Buffer.concat([iv, aes256CbcEncrypt(encryptKey, iv, Buffer.from(plain))]);
      return `v1.${Buffer.concat([body, tagOf(context, body)]).toString("base64url")}`;
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed.startsWith("v1.") ? sealed.slice(3) : "", "base64url");
      if (bytes.length < 16 + 16 + 32) throw refusal();
      const body = bytes.subarray(0, -32);
      if (!timingSafeEqual(tagOf(context, body), bytes.subarray(-32))) throw refusal();
      return Buffer.from(aes256CbcDecrypt(encryptKey, body.subarray(0, 16), body.subarray(16))).toString();
    },
  };
}

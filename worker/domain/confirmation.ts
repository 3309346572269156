import { hmacSha256, isTag } from "./ciphers.ts";

/** The exact action that is confirmed. */
export type Confirmed = { accountId: string; databaseId: string; statement: string };
type Confirmation = { nonce: string; expiresAtMs: number };

export const confirmWithinMs = 5 * 60_000;

const nonceBytes = 12;
const timeBytes = 6;
const tagBytes = 32;

/**
 * A stateless confirmation: a nonce, an expiry, and an HMAC over both and the confirmed action. It is single-use
 * because the host that runs the statement remembers the nonce until it expires.
 */
export function mintConfirmation(
  key: Uint8Array,
  confirmed: Confirmed,
  expiresAtMs: number,
  random12: Uint8Array,
): string {
  const head = Buffer.alloc(nonceBytes + timeBytes);
  head.set(random12);
  head.writeUIntBE(expiresAtMs, nonceBytes, timeBytes);
  return `cfm_${Buffer.concat([head, tagOf(key, head, confirmed)]).toString("base64url")}`;
}

/** null: issued for something else, by another installation, or expired. */
export function readConfirmation(
  key: Uint8Array,
  confirmed: Confirmed,
  token: string,
  nowMs: number,
): Confirmation | null {
  const bytes = Buffer.from(token.slice(4), "base64url");
  // Several base64url texts decode to the same bytes; only the canonical one is accepted.
  if (token !== `cfm_${bytes.toString("base64url")}`) return null;
  if (bytes.length !== nonceBytes + timeBytes + tagBytes) return null;
  const head = bytes.subarray(0, nonceBytes + timeBytes);
  if (!isTag(bytes.subarray(-tagBytes), tagOf(key, head, confirmed))) return null;
  const expiresAtMs = head.readUIntBE(nonceBytes, timeBytes);
  if (expiresAtMs <= nowMs) return null;
  return { nonce: head.subarray(0, nonceBytes).toString("base64url"), expiresAtMs };
}

function tagOf(
  key: Uint8Array,
  head: Uint8Array,
  { accountId, databaseId, statement }: Confirmed,
): Uint8Array {
  const parts = [accountId, databaseId, statement].flatMap((text) => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return hmacSha256(key, head, ...parts);
}

import { base62 } from "./tokens.ts";

/** Consonants and digits that cannot be misread for one another. */
const letters = "BCDFGHJKLMNPQRSTVWXZ479";
/** Digits that somebody may have read in place of these letters. */
const misread: Record<string, string> = { "2": "Z", "5": "S", "6": "G", "8": "B" };
export const lifetimeSeconds = 600;
export const pollIntervalSeconds = 2;

/** `XXXX-XXXX`, each character equally likely. @param random at least 64 random bytes */
export function formatUserCode(random: Uint8Array): string {
  const limit = 256 - (256 % letters.length);
  const picked = Array.from(random)
    .filter((byte) => byte < limit)
    .slice(0, 8)
    .map((byte) => letters.charAt(byte % letters.length));
  if (picked.length < 8) throw new Error("Too few random bytes for a user code");
  return `${picked.slice(0, 4).join("")}-${picked.slice(4).join("")}`;
}

/** The canonical form of what a person typed; null if it cannot be a code. */
export function readUserCode(text: string): string | null {
  const plain = text
    .toUpperCase()
    .replace(/[\s-]/g, "")
    .replace(/[2568]/g, (digit) => misread[digit] ?? digit);
  return new RegExp(`^[${letters}]{8}$`).test(plain) ? `${plain.slice(0, 4)}-${plain.slice(4)}` : null;
}

/** The device's secret contains its user code, so that a poll finds its object without a lookup. */
export const formatDeviceCode = (userCode: string, random32: Uint8Array): string =>
  `dev_${userCode.replace("-", "")}${base62(random32)}`;

export function userCodeOf(deviceCode: string): string | null {
  const match = /^dev_([A-Z0-9]{8})[0-9A-Za-z]{43}$/.exec(deviceCode);
  return match?.[1] ? readUserCode(match[1]) : null;
}

import { scryptSync } from "node:crypto";

/**
 * 4 MiB and about 8 ms: less than for an account's password, because the thread that serves all requests hashes it, and
 * the host hashes what visitors send. The host reads the parameters from the hash.
 */
const cost = { N: 2 ** 12, r: 8, p: 1 };

/** `scrypt$N$r$p$salt$hash`, salt and hash in base64url. */
export function basicAuthHash(password: string, salt: Uint8Array): string {
  const key = scryptSync(password.normalize("NFKC"), salt, 32, cost);
  const { N, r, p } = cost;
  return `scrypt$${N}$${r}$${p}$${Buffer.from(salt).toString("base64url")}$${key.toString("base64url")}`;
}

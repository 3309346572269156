import { scryptSync, timingSafeEqual } from "node:crypto";

/**
 * 32 MiB and about 100 ms of CPU in workerd (OWASP Password Storage). The parameters are stored in the hash, so they
 * can be increased later.
 */
const cost = { N: 2 ** 14, r: 16, p: 1 };

/** The pause is as long as a hash, which leaves half of workerd's only thread to other requests. */
const pauseMs = 100;
let lastEndedAt = 0;

/**
 * Hashes one password at a time, with pauses, because workerd hashes on the thread that serves all requests, even with
 * WebCrypto. Uses the clock instead of a lock, which an aborted request would never release.
 */
async function derive(password: string, salt: Uint8Array, { N, r, p }: typeof cost): Promise<Buffer> {
  for (;;) {
    const sinceMs = Date.now() - lastEndedAt;
    if (sinceMs < 0 || sinceMs >= pauseMs) break;
    await scheduler.wait(pauseMs - sinceMs);
  }
  const key = scryptSync(password.normalize("NFKC"), salt, 32, { N, r, p, maxmem: 256 * N * r });
  lastEndedAt = Date.now();
  return key;
}

/** `scrypt$N$r$p$salt$hash`, salt and hash in base64url. */
export async function hashPassword(password: string, salt: Uint8Array): Promise<string> {
  const key = await derive(password, salt, cost);
  return [
    "scrypt",
    cost.N,
    cost.r,
    cost.p,
    Buffer.from(salt).toString("base64url"),
    key.toString("base64url"),
  ].join("$");
}

/** Does the same work whether or not the account exists, so that timing reveals nothing. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, N, r, p, salt, hash] = (
    stored ?? `scrypt$${cost.N}$${cost.r}$${cost.p}$AAAAAAAAAAAAAAAAAAAAAA$`
  ).split("$");
  const key = await derive(password, Buffer.from(salt ?? "", "base64url"), {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  const expected = Buffer.from(hash ?? "", "base64url");
  return expected.length === key.length && timingSafeEqual(expected, key);
}

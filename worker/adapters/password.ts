import { scryptSync, timingSafeEqual } from "node:crypto";

/** 32 MiB and about 100 ms of CPU in workerd (OWASP Password Storage); kept in the hash, so that it can be raised. */
const cost = { N: 2 ** 14, r: 16, p: 1 };

/** As long as a hash takes: others have workerd's one thread for half of the time. */
const pauseMs = 100;
let lastEndedAt = 0;

/**
 * One at a time, with a pause between: workerd hashes on the thread that answers everybody, by WebCrypto as well. By the clock and
 * not by a lock, which a request that is broken off would never give back.
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

/** The same work whether or not there is such an account, so that the time tells nothing. */
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

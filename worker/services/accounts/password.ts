import { scrypt, timingSafeEqual } from "node:crypto";

/** 32 MiB and about 100 ms of CPU in workerd (OWASP Password Storage); kept in the hash, so that it can be raised. */
const cost = { N: 2 ** 14, r: 16, p: 1 };

const derive = (password: string, salt: Uint8Array, { N, r, p }: typeof cost): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(password.normalize("NFKC"), salt, 32, { N, r, p, maxmem: 256 * N * r }, (error, key) =>
      error ? reject(error) : resolve(key),
    ),
  );

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

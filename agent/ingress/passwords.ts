import { createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import type { CheckPassword } from "./decide.ts";

/** Wrong passwords of one address for one site in one minute. */
const maxWrong = 10;
const windowMs = 60_000;
/** Hashing at once; whoever comes meanwhile tries again. */
const maxHashing = 8;
/** What was right is known for so long, and so many at most. */
const rightMs = 10 * 60_000;
const maxKnown = 10_000;

/**
 * Checks the passwords of sites (RFC 7617). A right one costs a hash every ten minutes; a wrong one a hash each time, of
 * which an address has ten a minute.
 */
export class Passwords {
  /** By what nobody but this process can compute: password, user and stored hash. */
  private readonly right = new Map<string, number>();
  private readonly wrong = new Map<string, { count: number; untilMs: number }>();
  private readonly key = randomBytes(32);
  private hashing = 0;
  private readonly now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  readonly check: CheckPassword = async (basicAuth, authorization, address) => {
    const given = readBasic(authorization);
    if (!given) return false;
    const proof = createHmac("sha256", this.key)
      .update(JSON.stringify([basicAuth.hash, basicAuth.username, given.username, given.password]))
      .digest("base64");
    if ((this.right.get(proof) ?? -Infinity) > this.now()) return true;
    const guesser = JSON.stringify([basicAuth.hash, address]);
    const guesses = this.guessesOf(guesser);
    if (guesses.count >= maxWrong)
      return { retryAfterSeconds: Math.max(1, Math.ceil((guesses.untilMs - this.now()) / 1000)) };
    if (this.hashing >= maxHashing) return { retryAfterSeconds: 1 };
    // Before it is known: those that are checked at once count too.
    guesses.count++;
    this.hashing++;
    try {
      const isPassword = await matches(given.password, basicAuth.hash);
      if (!isPassword || !isEqual(given.username, basicAuth.username)) return false;
      guesses.count--;
      remember(this.right, proof, this.now() + rightMs);
      return true;
    } finally {
      this.hashing--;
    }
  };

  private guessesOf(guesser: string) {
    const known = this.wrong.get(guesser);
    if (known && known.untilMs > this.now()) return known;
    const fresh = { count: 0, untilMs: this.now() + windowMs };
    remember(this.wrong, guesser, fresh);
    return fresh;
  }
}

/** The oldest goes first. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= maxKnown) break;
    map.delete(oldest);
  }
}

function readBasic(authorization: string): { username: string; password: string } | null {
  const [, encoded] = /^Basic +([A-Za-z0-9+/]{1,1000}={0,2})$/i.exec(authorization) ?? [];
  if (encoded === undefined) return null;
  const [, username, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  return username === undefined || password === undefined ? null : { username, password };
}

/** `scrypt$N$r$p$salt$hash` */
function matches(password: string, stored: string): Promise<boolean> {
  const [, N, r, p, salt = "", hash = ""] = stored.split("$");
  const expected = Buffer.from(hash, "base64url");
  return new Promise((resolve, reject) => {
    scrypt(
      password.normalize("NFKC"),
      Buffer.from(salt, "base64url"),
      expected.length,
      { N: Number(N), r: Number(r), p: Number(p) },
      (error, key) =>
        error ? reject(error) : resolve(expected.length > 0 && timingSafeEqual(expected, key)),
    );
  });
}

function isEqual(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

import { createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { countedAs } from "../../protocol/client-address.ts";
import type { CheckPassword } from "./decide.ts";

/** Wrong passwords of one address for one site in one minute. */
const maxWrong = 10;
const windowMs = 60_000;
/** Hashing at once, in all and for one site; whoever comes meanwhile tries again. */
const maxHashing = 8;
const maxHashingOfSite = 2;
/** What was right is known for so long, and so many at most. */
const rightMs = 10 * 60_000;
const maxKnown = 10_000;

/**
 * Checks the passwords of sites (RFC 7617). A right one costs an address a hash every ten minutes; a wrong one a hash each
 * time, of which an address has ten a minute.
 */
export class Passwords {
  /**
   * By address, so that one without guesses left does not guess on at what others have sent; and by what nobody but this
   * process can compute: password, user and stored hash.
   */
  private readonly right = new Map<string, number>();
  private readonly wrong = new Map<string, { count: number; untilMs: number }>();
  private readonly key = randomBytes(32);
  /** Shared by all who send the same at once, as a browser does with all that a page consists of. */
  private readonly hashing = new Map<string, { hash: string; isPassword: Promise<boolean> }>();
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
    const client = countedAs(address);
    const proofOfClient = `${client} ${proof}`;
    if ((this.right.get(proofOfClient) ?? -Infinity) > this.now()) return true;
    const guesses = this.guessesOf(JSON.stringify([basicAuth.hash, client]));
    if (guesses.count >= maxWrong)
      return { retryAfterSeconds: Math.max(1, Math.ceil((guesses.untilMs - this.now()) / 1000)) };
    const shared = this.hashing.get(proof);
    if (!shared && this.isBusy(basicAuth.hash)) return { retryAfterSeconds: 1 };
    // Before it is known: those that are checked at once count too.
    if (!shared) guesses.count++;
    const isPassword = await (shared?.isPassword ?? this.matches(proof, given.password, basicAuth.hash));
    if (!isPassword || !isEqual(given.username, basicAuth.username)) return false;
    if (!shared) guesses.count--;
    remember(this.right, proofOfClient, this.now() + rightMs);
    return true;
  };

  private isBusy(hash: string): boolean {
    const ofSite = [...this.hashing.values()].filter((one) => one.hash === hash);
    return this.hashing.size >= maxHashing || ofSite.length >= maxHashingOfSite;
  }

  private matches(proof: string, password: string, hash: string): Promise<boolean> {
    const isPassword = matches(password, hash).finally(() => this.hashing.delete(proof));
    this.hashing.set(proof, { hash, isPassword });
    return isPassword;
  }

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

import { createHash, createHmac, pbkdf2Sync } from "node:crypto";

// Servers' stored forms of a password: with these, the password itself is in no statement, no file and no log.

/** SCRAM-SHA-256 (RFC 5802 §3, RFC 7677), in PostgreSQL's format. */
export function scramVerifier(password: string, salt: Buffer): string {
  const iterations = 4096;
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const serverKey = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

const sha1 = (bytes: string | Buffer) => createHash("sha1").update(bytes).digest();

/** `mysql_native_password`, the method that every client supports. */
export function mysqlVerifier(password: string): string {
  return `*${sha1(sha1(password)).toString("hex").toUpperCase()}`;
}

/** In the format that `ACL SETUSER` takes after `#`. */
export const redisVerifier = (password: string): string =>
  createHash("sha256").update(password).digest("hex");

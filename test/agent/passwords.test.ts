import { scryptSync } from "node:crypto";
import { expect, it } from "vitest";
import { Passwords } from "../../agent/ingress/passwords.ts";

const hashOf = (password: string, salt: string): string => {
  const hash = scryptSync(password, Buffer.from(salt, "base64url"), 32, { N: 1024, r: 8, p: 1 });
  return `scrypt$1024$8$1$${salt}$${hash.toString("base64url")}`;
};
const protectedBy = (salt: string) => ({ username: "team", hash: hashOf("correct horse", salt) });
const [one, other] = [protectedBy("AAAA"), protectedBy("BBBB")];
const basic = (password: string) => `Basic ${Buffer.from(`team:${password}`).toString("base64")}`;
const right = basic("correct horse");

it("an address has ten wrong passwords a minute, and all of an IPv6 /64 count as one", async () => {
  const passwords = new Passwords(() => 0);
  const answers = [];
  for (let guess = 1; guess <= 11; guess++)
    answers.push(await passwords.check(one, basic(`wrong ${guess}`), `2001:db8:1:2::${guess}`));
  expect(answers).toEqual([...Array<boolean>(10).fill(false), { retryAfterSeconds: 60 }]);
  expect(await passwords.check(one, right, "2001:db8:1:2:ffff::1")).toEqual({ retryAfterSeconds: 60 });
  expect(await passwords.check(one, right, "2001:db8:1:3::1")).toBe(true);
});

it("an address without guesses left does not guess on at what others have sent", async () => {
  const passwords = new Passwords(() => 0);
  expect(await passwords.check(one, right, "198.51.100.1")).toBe(true);
  for (let guess = 1; guess <= 10; guess++)
    await passwords.check(one, basic(`wrong ${guess}`), "203.0.113.66");
  expect(await passwords.check(one, right, "203.0.113.66")).toEqual({ retryAfterSeconds: 60 });
  expect(await passwords.check(one, right, "198.51.100.1")).toBe(true);
});

it("guesses at one site, from however many addresses, keep no visitor of another waiting", async () => {
  const passwords = new Passwords();
  const guesses = Array.from({ length: 8 }, (_, n) =>
    passwords.check(one, basic(`wrong ${n}`), `192.0.2.${n}`),
  );
  expect(await passwords.check(other, right, "198.51.100.1")).toBe(true);
  const answers = await Promise.all(guesses);
  expect(answers.map((answer) => answer === false)).toEqual([true, true, ...Array<boolean>(6).fill(false)]);
  expect(await passwords.check(one, right, "198.51.100.1")).toBe(true);
});

it("all that a browser asks for at once passes with the right password, also when it is no longer known", async () => {
  let nowMs = 0;
  const passwords = new Passwords(() => nowMs);
  const page = () =>
    Promise.all(Array.from({ length: 20 }, () => passwords.check(one, right, "198.51.100.1")));
  expect(new Set(await page())).toEqual(new Set([true]));
  nowMs = 11 * 60_000;
  expect(new Set(await page())).toEqual(new Set([true]));
});

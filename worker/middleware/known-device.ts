import { timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import { serialize } from "hono/utils/cookie";
import { cookiePrefix, ownCookie } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import { hmacSha256 } from "../domain/ciphers.ts";
import { configOf, tokenKeys, type Config } from "../config.ts";

const cookieName = (config: Config): string => `${cookiePrefix(config)}_device`;
const maxAgeSeconds = 365 * 86_400;

const tagOf = (key: Uint8Array, email: string): Uint8Array => hmacSha256(key, Buffer.from(email));

/** Whether somebody has signed in to this account here before. It lets nobody in: it is a better place in the queue of passwords. */
export function isKnownDevice(c: Context<AppEnv>, email: string): boolean {
  const config = configOf(c.env);
  const told = Buffer.from(getCookie(c, cookieName(config)) ?? "", "base64url");
  return tokenKeys(config, "known-device").some((key) => {
    const tag = tagOf(key, email);
    return tag.length === told.length && timingSafeEqual(tag, told);
  });
}

/** Stays when the session ends, which is when it is needed. */
export function knownDeviceCookie(c: Context<AppEnv>, email: string): string {
  const config = configOf(c.env);
  const tag = Buffer.from(tagOf(tokenKeys(config, "known-device")[0], email)).toString("base64url");
  return serialize(cookieName(config), tag, { ...ownCookie(config), maxAge: maxAgeSeconds });
}

import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { guardOf } from "../compose.ts";
import type { Actor } from "../ctx.ts";
import { configOf, tokenKeys } from "../config.ts";
import { AppError } from "../domain/app-error.ts";
import { refuseSuspended } from "../api/access.ts";
import { isOwnApiKey, sha256Hex } from "../domain/tokens.ts";
import { contextFor } from "./context.ts";
import { viewing } from "./view-as.ts";
import { clientAddress, countedAddress, takeForRequest } from "./limit.ts";
import { requireSameOrigin, sessionActor } from "./session.ts";

/** The credential of the request's header. @throws AppError unauthorized */
export function bearerOf(c: Context<AppEnv>): string {
  const token = /^Bearer (\S+)$/i.exec(c.req.header("Authorization") ?? "")?.[1];
  if (!token) throw new AppError("unauthorized");
  return token;
}

/** Of keys that are ours: their check and their hash take a fifth of a read's processor time. */
const hashes = new Map<string, string>();
const mostHashes = 10_000;

/** @throws AppError unauthorized for a key that this installation has not issued */
async function hashOfOwnKey(c: Context<AppEnv>): Promise<string> {
  const key = bearerOf(c);
  let hash = hashes.get(key);
  if (hash !== undefined) return hash;
  if (!(await isOwnApiKey(key, tokenKeys(configOf(c.env), "api-key-check"))))
    throw new AppError("unauthorized");
  if (hashes.size >= mostHashes) hashes.clear();
  hashes.set(key, (hash = sha256Hex(key)));
  return hash;
}

/**
 * The account behind the key; one Durable Object call validates the key and counts the request. @throws AppError
 * unauthorized, rate_limited, forbidden for a suspended account
 */
async function keyActor(c: Context<AppEnv>, at: "api" | "mcp"): Promise<Actor> {
  const hash = await hashOfOwnKey(c);
  const verdict = await guardOf(c.env, hash).check(hash);
  if (!verdict.actor || (verdict.actor.forMcp && at !== "mcp")) throw new AppError("unauthorized");
  c.header("RateLimit-Policy", `"key";q=${verdict.limit};w=${verdict.windowSeconds}`);
  c.header("RateLimit", `"key";r=${verdict.left};t=${verdict.resetSeconds}`);
  if (!verdict.admitted) throw new AppError("rate_limited", { retryAfterSeconds: verdict.resetSeconds });
  refuseSuspended(verdict.actor);
  return verdict.actor;
}

/** Requires a key, for clients of MCP: 401, then 429. */
export const authenticateMcp = createMiddleware<AppEnv>(async (c, next) => {
  c.set("ctx", contextFor(c, await keyActor(c, "mcp")));
  await next();
});

/** Requires a key or a session: 401, then 429. A session needs one query, and state changes require our own Origin. */
export const authenticate = createMiddleware<AppEnv>(async (c, next) => {
  if (c.req.header("Authorization") !== undefined) {
    c.set("ctx", contextFor(c, await viewing(c, await keyActor(c, "api"))));
    return next();
  }
  const actor = await sessionActor(c);
  if (!actor) throw new AppError("unauthorized");
  await takeForRequest(c, "session", actor.accountId);
  requireSameOrigin(c);
  c.set("ctx", contextFor(c, await viewing(c, actor)));
  return next();
});

/**
 * For public endpoints: a key is still validated and counted, so that clients notice an invalid one; without a key,
 * the client address is counted.
 */
export const anybody = createMiddleware<AppEnv>(async (c, next) => {
  if (c.req.header("Authorization") !== undefined) await keyActor(c, "api");
  else await takeForRequest(c, "address", countedAddress(c));
  c.set("ctx", contextFor(c, { type: "link", address: clientAddress(c) }));
  await next();
});

import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { configOf, tokenKeys } from "../env.ts";
import { AppError } from "../domain/app-error.ts";
import { isOwnApiKey, sha256Hex } from "../domain/tokens.ts";
import { contextFor } from "./context.ts";
import { takeForRequest } from "./limit.ts";
import { requireSameOrigin, sessionActor } from "./session.ts";

/**
 * A key or a session. 401, then 429: for a key, one Durable Object call knows it and counts the request; for a session,
 * one query, and a change needs our own Origin.
 */
export const authenticate = createMiddleware<AppEnv>(async (c, next) => {
  if (c.req.header("Authorization") === undefined) {
    const actor = await sessionActor(c);
    if (!actor) throw new AppError("unauthorized");
    await takeForRequest(c, "session", actor.accountId);
    requireSameOrigin(c);
    c.set("ctx", contextFor(c, actor));
    return next();
  }
  const [scheme, key, ...rest] = (c.req.header("Authorization") ?? "").split(" ");
  if (scheme?.toLowerCase() !== "bearer" || !key || rest.length > 0) throw new AppError("unauthorized");
  if (!(await isOwnApiKey(key, tokenKeys(configOf(c.env), "api-key-check"))))
    throw new AppError("unauthorized");
  const hash = sha256Hex(key);
  const verdict = await c.env.KEY_GUARD.get(c.env.KEY_GUARD.idFromName(hash)).check(hash);
  if (!verdict.actor) throw new AppError("unauthorized");
  c.header("RateLimit-Policy", `"key";q=${verdict.limit};w=${verdict.windowSeconds}`);
  c.header("RateLimit", `"key";r=${verdict.left};t=${verdict.resetSeconds}`);
  if (!verdict.admitted) throw new AppError("rate_limited", { retryAfterSeconds: verdict.resetSeconds });
  c.set("ctx", contextFor(c, verdict.actor));
  await next();
});

import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { getCookie, setCookie } from "hono/cookie";
import { isSecure, sessionCookie, sessionDays, signedSessionToken } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import type { Actor } from "../ctx.ts";
import { configOf } from "../config.ts";
import { AppError } from "../domain/app-error.ts";
import { extendSession } from "../services/accounts/extend-session.ts";
import { findSession } from "../services/accounts/find-session.ts";
import { contextFor } from "./context.ts";
import { countedAddress, takeFrom } from "./limit.ts";

const dayMs = 86_400_000;

/** Signed cookies of sessions that this isolate knows to have ended. None comes back, so none is looked for twice. */
const ended = new Set<string>();
const maxEnded = 10_000;

/** For the frame of pages that are for everybody: reads the cookie and nothing else. */
export const noteSession = createMiddleware<AppEnv>(async (c, next) => {
  const config = configOf(c.env);
  const cookie = getCookie(c, sessionCookie(config));
  c.set("hasSession", cookie !== undefined && (await signedSessionToken(config, cookie)) !== null);
  await next();
});

/** A cookie alone must not change anything for another site's page: state changes need our own Origin. @throws AppError */
export function requireSameOrigin(c: Context<AppEnv>): void {
  if (c.req.method === "GET" || c.req.method === "HEAD") return;
  if (c.req.header("Origin") !== configOf(c.env).SITE_URL) throw new AppError("forbidden");
}

/**
 * The account that is signed in here, or null: one query, and none for a cookie that is not signed by us. Whoever comes with
 * ended ones is counted. @throws AppError rate_limited
 */
export async function sessionActor(c: Context<AppEnv>): Promise<(Actor & { type: "session" }) | null> {
  const config = configOf(c.env);
  const cookie = getCookie(c, sessionCookie(config));
  const token = cookie === undefined ? null : await signedSessionToken(config, cookie);
  if (cookie === undefined || token === null || ended.has(token)) return null;
  const ctx = contextFor(c, { type: "link" });
  const session = await findSession(ctx, token);
  if (!session) {
    if (ended.size < maxEnded) ended.add(token);
    await takeFrom(c, "address", countedAddress(c));
    return null;
  }
  const now = ctx.now().getTime();
  if (session.expiresAt.getTime() - now < (sessionDays - 1) * dayMs) {
    ctx.defer(extendSession(ctx, token, new Date(now + sessionDays * dayMs)));
    setCookie(c, sessionCookie(config), cookie, {
      path: "/",
      httpOnly: true,
      sameSite: "Lax",
      secure: isSecure(config),
      maxAge: sessionDays * 86_400,
    });
  }
  return session.actor;
}

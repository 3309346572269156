import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { getCookie, setCookie } from "hono/cookie";
import { ownCookie, sessionCookie, sessionDays, signedSessionToken } from "../adapters/auth.ts";
import type { AppEnv } from "../app-env.ts";
import type { Actor } from "../ctx.ts";
import { configOf, type Config } from "../config.ts";
import { AppError } from "../domain/app-error.ts";
import { extendSession } from "../services/accounts/extend-session.ts";
import { findSession } from "../services/accounts/find-session.ts";
import { contextFor } from "./context.ts";
import { countedAddress, takeFrom } from "./limit.ts";

const dayMs = 86_400_000;

/**
 * Signed cookies of sessions that this isolate knows to have ended. An ended session never becomes valid again, so
 * each is looked up only once.
 */
const ended = new Set<string>();
const maxEnded = 10_000;

/** For the layout of public pages: reads only the cookie. */
export const noteSession = createMiddleware<AppEnv>(async (c, next) => {
  const config = configOf(c.env);
  const cookie = getCookie(c, sessionCookie(config));
  c.set("hasSession", cookie !== undefined && (await signedSessionToken(config, cookie)) !== null);
  await next();
});

/** For a request from another site's page, or from a page of ours that was opened at another address. */
export const notOurPage = ({ SITE_URL }: Config): AppError =>
  new AppError("forbidden", {
    reason: `This is accepted only from pages at ${SITE_URL}: open the service at that address. Programs use an API key.`,
  });

/** Prevents cross-site request forgery: state changes with a cookie require our own Origin. @throws AppError */
export function requireSameOrigin(c: Context<AppEnv>): void {
  if (c.req.method === "GET" || c.req.method === "HEAD") return;
  const config = configOf(c.env);
  if (c.req.header("Origin") !== config.SITE_URL) throw notOurPage(config);
}

/**
 * The signed-in account, or null. Needs one query, and none for a cookie that we did not sign. Requests with ended
 * sessions count against a limit. @throws AppError rate_limited
 */
export async function sessionActor(c: Context<AppEnv>): Promise<(Actor & { type: "session" }) | null> {
  const config = configOf(c.env);
  const cookie = getCookie(c, sessionCookie(config));
  if (cookie === undefined) return null;
  const token = await signedSessionToken(config, cookie);
  if (token === null || ended.has(token)) return null;
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
    setCookie(c, sessionCookie(config), cookie, { ...ownCookie(config), maxAge: sessionDays * 86_400 });
  }
  return session.actor;
}

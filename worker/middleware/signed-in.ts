import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import type { Ctx } from "../ctx.ts";
import { contextFor } from "./context.ts";
import { takeForRequest } from "./limit.ts";
import { viewing } from "./view-as.ts";
import { requireSameOrigin, sessionActor } from "./session.ts";

/**
 * The context of the signed-in person, with the rate limit of their API requests; null redirects to the sign-in page.
 * Pages are not cached and are revalidated on back navigation.
 */
export async function personOf(c: Context<AppEnv>): Promise<Ctx | null> {
  const actor = await sessionActor(c);
  if (!actor) return null;
  await takeForRequest(c, "session", actor.accountId);
  requireSameOrigin(c);
  return contextFor(c, await viewing(c, actor));
}

/** To sign in, and back to the page that was asked for. What a form sent is not repeated. */
export function toSignIn(c: Context<AppEnv>): Response {
  const { pathname, search } = new URL(c.req.url);
  const isHere = c.req.method !== "GET" || pathname === "/";
  return c.redirect(isHere ? "/sign-in" : `/sign-in?next=${encodeURIComponent(pathname + search)}`, 303);
}

/** For pages that require a signed-in person. */
export const signedIn = createMiddleware<AppEnv>(async (c, next) => {
  const ctx = await personOf(c);
  if (!ctx) return toSignIn(c);
  c.set("ctx", ctx);
  await next();
  return undefined;
});

import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import type { Ctx } from "../context.ts";
import { contextFor } from "./context.ts";
import { takeFrom } from "./limit.ts";
import { requireSameOrigin, sessionActor } from "./session.ts";

/** The context of the person signed in here, counted like their API requests; null sends them to sign in. */
export async function personOf(c: Context<AppEnv>): Promise<Ctx | null> {
  const actor = await sessionActor(c);
  if (!actor) return null;
  await takeFrom(c, "session", actor.accountId);
  requireSameOrigin(c);
  return contextFor(c, actor);
}

/** For pages of which each is somebody's own: nothing between keeps them, and they are asked anew when they are gone back to. */
export const signedIn = createMiddleware<AppEnv>(async (c, next) => {
  const ctx = await personOf(c);
  if (!ctx) return c.redirect("/sign-in", 303);
  c.set("ctx", ctx);
  c.header("Cache-Control", "no-store");
  await next();
  return undefined;
});

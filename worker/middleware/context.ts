import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { contextOf } from "../compose.ts";
import type { Actor, Ctx } from "../ctx.ts";
import type { Context } from "hono";

/** The context of this request and actor; deferred work may outlive the answer. */
export const contextFor = (c: Context<AppEnv>, actor: Actor): Ctx =>
  contextOf(c.env, actor, (work) => c.executionCtx.waitUntil(work), c.get("requestId"));

/** For routes whose URL is the credential, or that need none. */
export const actAs = (type: "link" | "system") =>
  createMiddleware<AppEnv>(async (c, next) => {
    c.set("ctx", contextFor(c, { type }));
    await next();
  });

import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";
import { contextOf } from "../compose.ts";
import type { Actor, Ctx } from "../ctx.ts";
import type { Context } from "hono";

/** A context for this request and actor; deferred work outlives the answer. */
export const contextFor = (c: Context<AppEnv>, actor: Actor): Ctx =>
  contextOf(c.env, actor, (work) => c.executionCtx.waitUntil(work));

/** For routes whose credential is their address, or that need none. */
export const actAs = (type: "link" | "system") =>
  createMiddleware<AppEnv>(async (c, next) => {
    c.set("ctx", contextFor(c, { type }));
    await next();
  });

import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/** On every answer, refusals and streams too: it is what it says it is, and kept nowhere unless it says how. */
export const answerHeaders = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  // A WebSocket's upgrade carries no headers of ours.
  if (c.res.status === 101) return;
  c.header("X-Content-Type-Options", "nosniff");
  if (!c.res.headers.has("Cache-Control")) c.header("Cache-Control", "no-store");
});

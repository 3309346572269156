import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/** On every answer, including errors and streams: no content sniffing, and no caching unless the answer allows it. */
export const answerHeaders = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  // A WebSocket upgrade response cannot carry additional headers.
  if (c.res.status === 101) return;
  c.header("X-Content-Type-Options", "nosniff");
  if (!c.res.headers.has("Cache-Control")) c.header("Cache-Control", "no-store");
});

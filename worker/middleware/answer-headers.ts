import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/**
 * On every answer, including errors and streams: no content sniffing, no caching unless the answer allows it, and the time
 * (RFC 9110, section 6.6.1), which workerd does not say by itself.
 */
export const answerHeaders = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  // A WebSocket upgrade response cannot carry additional headers.
  if (c.res.status === 101) return;
  c.header("X-Content-Type-Options", "nosniff");
  c.header("Date", new Date().toUTCString());
  if (!c.res.headers.has("Cache-Control")) c.header("Cache-Control", "no-store");
});

import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/** Set on the final answer, because a bare Response loses headers that were set before it. */
export const setRequestId = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  // A WebSocket upgrade response cannot carry additional headers.
  if (c.res.status !== 101 && !c.res.headers.has("X-Request-Id"))
    c.header("X-Request-Id", c.get("requestId"));
});

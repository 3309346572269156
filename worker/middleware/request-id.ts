import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/** On every answer: what is made as a bare Response takes no headers that were set before it. */
export const tellRequestId = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  // A WebSocket's upgrade carries no headers of ours.
  if (c.res.status !== 101 && !c.res.headers.has("X-Request-Id"))
    c.header("X-Request-Id", c.get("requestId"));
});

import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../app-env.ts";

/** For pages of whoever has their address: nothing between keeps them. */
export const keptNowhere = createMiddleware<AppEnv>(async (c, next) => {
  c.header("Cache-Control", "no-store");
  await next();
});

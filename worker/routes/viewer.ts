import { createMiddleware } from "hono/factory";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { contextFor } from "../middleware/context.ts";
import { sessionActor } from "../middleware/session.ts";

/** For pages that need no session: a person who has one keeps their navigation, and is named in it. */
export const noteViewer = createMiddleware<AppEnv>(async (c, next) => {
  if (c.get("hasSession") === true) {
    const actor = await sessionActor(c);
    if (actor) c.set("viewer", await call(contextFor(c, actor), "getAccount", {}));
    else c.set("hasSession", false);
  }
  await next();
});

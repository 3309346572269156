import type { Ctx } from "./context.ts";
import type { Env } from "./env.ts";

/** What Hono carries through a request. */
export type AppEnv = { Bindings: Env; Variables: { requestId: string; ctx: Ctx } };

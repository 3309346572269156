import { env } from "cloudflare:workers";
import type { Env } from "../env.ts";
import worker from "../index.ts";
import { asServed } from "./as-served.ts";
import { startClock } from "./clock.ts";
import { embeddedD1 } from "./database.ts";
import { embeddedGuards } from "./guards.ts";

/**
 * The Worker as `npm start` runs it: with its database in an object instead of workerd's D1, the guards of keys in its
 * memory, a clock of its own, and no edge before it.
 */
env.DB = embeddedD1(() => env.EMBEDDED_DATABASE);
env.GUARDS = embeddedGuards(env as unknown as Env, () => env.KEY_USES);

export { Clock } from "./clock.ts";
export { EmbeddedDatabase } from "./database.ts";
export { KeyUses } from "./guards.ts";
export * from "../index.ts";
export default {
  ...worker,
  fetch: (request, bindings, execution) => {
    startClock(env);
    return worker.fetch(asServed(request), bindings, execution);
  },
} satisfies ExportedHandler<Env>;

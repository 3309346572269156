import type { D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { bindings } from "./service.ts";

const { DB } = bindings;

/** All of `drizzle`, in order. */
export const { TEST_MIGRATIONS: migrations } = env as unknown as { TEST_MIGRATIONS: D1Migration[] };

export const migrate = (some: readonly D1Migration[]): Promise<unknown> =>
  DB.batch(some.flatMap(({ queries }) => queries.map((query) => DB.prepare(query))));

/** `reset` of cloudflare:test also closes D1 under whoever holds it still, and leaves Durable Objects that sleep as they are. */
export async function emptyDatabase(): Promise<void> {
  const { results } = await DB.prepare(
    "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'trigger') AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*' ORDER BY type DESC",
  ).all<{ type: string; name: string }>();
  const drops = results.map(({ type, name }) => DB.prepare(`DROP ${type} "${name}"`));
  await DB.batch([DB.prepare("PRAGMA defer_foreign_keys = on"), ...drops]);
}

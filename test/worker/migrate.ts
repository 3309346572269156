import { abortAllDurableObjects, type D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import { forgetPublic } from "../../worker/services/settings/read.ts";
import { renameLimits } from "./rename-limits.ts";
import { bindings, forgetOperator } from "./service.ts";

const { DB } = bindings;

/** `reset` of cloudflare:test also closes D1 under whoever holds it still, and leaves Durable Objects that sleep as they are. */
async function emptyDatabase(): Promise<void> {
  const { results } = await DB.prepare(
    "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'trigger') AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*' ORDER BY type DESC",
  ).all<{ type: string; name: string }>();
  const drops = results.map(({ type, name }) => DB.prepare(`DROP ${type} "${name}"`));
  await DB.batch([DB.prepare("PRAGMA defer_foreign_keys = on"), ...drops]);
}

// With --no-isolate files share a workerd: each begins with an empty installation, whatever the one before it left.
vi.restoreAllMocks();
vi.useRealTimers();
forgetOperator();
forgetPublic(contextOf(bindings, { type: "system" }, () => undefined));
renameLimits();
// Not evicted, which waits for whoever holds one still, such as an open stream.
await abortAllDurableObjects();
await emptyDatabase();
const { TEST_MIGRATIONS } = env as unknown as { TEST_MIGRATIONS: D1Migration[] };
await DB.batch(TEST_MIGRATIONS.flatMap(({ queries }) => queries.map((query) => DB.prepare(query))));

import { abortAllDurableObjects } from "cloudflare:test";
import { vi } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import { forgetPublic } from "../../worker/services/settings/read.ts";
import { emptyDatabase, migrate, migrations } from "./empty-database.ts";
import { renameLimits } from "./rename-limits.ts";
import { bindings, forgetOperator } from "./service.ts";

// With --no-isolate files share a workerd: each begins with an empty installation, whatever the one before it left.
vi.restoreAllMocks();
vi.useRealTimers();
forgetOperator();
forgetPublic(contextOf(bindings, { type: "system" }, () => undefined));
renameLimits();
// Not evicted, which waits for whoever holds one still, such as an open stream.
await abortAllDurableObjects();
await emptyDatabase();
await migrate(migrations);

import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { DatabaseEngine } from "./database-engine.ts";
import { mysql } from "./mysql/server.ts";
import { postgresql } from "./postgresql/server.ts";
import { redis } from "./redis/server.ts";

export const engines: Record<DatabaseSpec["type"], DatabaseEngine> = { postgresql, mysql, redis };

import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { DatabaseEngine } from "./engine.ts";
import { mysql } from "./mysql.ts";
import { postgresql } from "./postgresql.ts";
import { redis } from "./redis.ts";

export const engines: Record<DatabaseSpec["type"], DatabaseEngine> = { postgresql, mysql, redis };

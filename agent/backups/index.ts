import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Copier } from "./copier.ts";
import { mysql } from "./mysql.ts";
import { postgresql } from "./postgresql.ts";
import { redis } from "./redis.ts";

export const copiers: Record<DatabaseSpec["type"], Copier> = { postgresql, mysql, redis };

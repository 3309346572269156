import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Copier } from "./copier.ts";
import { mysql } from "../mysql/backup.ts";
import { postgresql } from "../postgresql/backup.ts";
import { redis } from "../redis/backup.ts";

export const copiers: Record<DatabaseSpec["type"], Copier> = { postgresql, mysql, redis };

import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Copier } from "./backups/copier.ts";
import type { DatabaseEngine } from "./database-engine.ts";
import type { Inspector } from "./inspect/place.ts";
import * as mysqlBackup from "./mysql/backup.ts";
import { mysql } from "./mysql/server.ts";
import * as postgresqlBackup from "./postgresql/backup.ts";
import { postgresql } from "./postgresql/server.ts";
import * as redisBackup from "./redis/backup.ts";
import { redis } from "./redis/server.ts";

type Type = DatabaseSpec["type"];

export const engines: Record<Type, DatabaseEngine> = { postgresql, mysql, redis };

export const copiers: Record<Type, Copier> = {
  postgresql: postgresqlBackup.postgresql,
  mysql: mysqlBackup.mysql,
  redis: redisBackup.redis,
};

/** Two of the clients cost an agent 25 MB, so each is loaded at the first question to its server. */
export const inspectors: Record<Type, () => Promise<Inspector>> = {
  postgresql: async () => (await import("./postgresql/inspect.ts")).postgresql,
  mysql: async () => (await import("./mysql/inspect.ts")).mysql,
  redis: async () => (await import("./redis/inspect.ts")).redis,
};

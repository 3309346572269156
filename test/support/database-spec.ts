import { randomBytes } from "node:crypto";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { databaseEngines } from "../../worker/domain/database-engines.ts";

const { BERTH_POSTGRES, BERTH_MARIADB, BERTH_REDIS } = process.env;
const chosen = (name: string, versions: string | undefined): string | undefined =>
  versions && `${name}:${versions.split(",")[0]}`;
/** The shipped images, unless a manual run selects another version (test/README.md). */
export const testedImages: Record<DatabaseSpec["type"], string> = {
  postgresql: chosen("postgres", BERTH_POSTGRES) ?? databaseEngines.postgresql.image,
  mysql: chosen("mariadb", BERTH_MARIADB) ?? databaseEngines.mysql.image,
  redis: chosen("redis", BERTH_REDIS) ?? databaseEngines.redis.image,
};

/** A database with one login, as sent to a host. */
export function databaseSpec(
  { databaseId, accountId, type }: Pick<DatabaseSpec, "databaseId" | "accountId" | "type">,
  name: string = type,
): DatabaseSpec {
  const databaseName = `${name}_data`;
  return {
    databaseId,
    accountId,
    type,
    image: testedImages[type],
    hostname: `${name}.internal`,
    databaseName,
    adminPassword: randomBytes(12).toString("hex"),
    logins: [{ username: `${databaseName}_1`, password: randomBytes(12).toString("hex") }],
    limits: { memoryMb: 256, cpuMilli: 1000, pids: 256 },
  };
}

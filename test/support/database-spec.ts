import { randomBytes } from "node:crypto";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { databaseEngines } from "../../worker/domain/database-engines.ts";

/** A database with one login, as a host is told to run it. */
export function databaseSpec(
  { databaseId, accountId, type }: Pick<DatabaseSpec, "databaseId" | "accountId" | "type">,
  name: string = type,
): DatabaseSpec {
  const databaseName = `${name}_data`;
  return {
    databaseId,
    accountId,
    type,
    image: databaseEngines[type].image,
    hostname: `${name}.internal`,
    databaseName,
    adminPassword: randomBytes(12).toString("hex"),
    logins: [{ username: `${databaseName}_1`, password: randomBytes(12).toString("hex") }],
    limits: { memoryMb: 256, cpuMilli: 1000, pids: 256 },
  };
}

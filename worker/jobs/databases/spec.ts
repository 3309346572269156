import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import type { Ctx } from "../../ctx.ts";
import { databaseHostname } from "../../domain/database-engines.ts";
import { databaseOf, type Material } from "../kinds/kind.ts";
import { openAdminPassword, validLogins } from "./logins.ts";

/** How the database's container runs, with its passwords decrypted. */
export function specOf(ctx: Ctx, material: Material, logins = validLogins): DatabaseSpec {
  const database = databaseOf(material);
  const { memoryMb, cpuMilli, pids, diskGb } = material.pack;
  return {
    databaseId: database.id,
    accountId: database.accountId,
    type: database.type,
    image: database.image,
    hostname: databaseHostname(database.name),
    ...(database.volume !== null && { volume: database.volume }),
    databaseName: database.databaseName,
    adminPassword: openAdminPassword(ctx, database),
    logins: logins(ctx, database),
    limits: { memoryMb, cpuMilli, pids, diskGb },
    ...(database.publicEnabled &&
      database.publicPort !== null && {
        publicAccess: { port: database.publicPort, allow: database.publicAllow },
      }),
  };
}

import type { DatabaseJobKind, DatabaseSpec, Job } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../context.ts";
import type { packs } from "../../db/schema.ts";
import { databaseHostname } from "../../domain/database-engines.ts";
import { loginsToBe, openAdminPassword, validLogins } from "./logins.ts";
import type { DatabaseRow } from "./owned.ts";

export type DatabaseMaterial = { database: DatabaseRow; pack: typeof packs.$inferSelect };

/** The job as it travels: passwords are opened only here, on their way to the host. */
export function databaseFrameOf(
  ctx: Ctx,
  { id, kind }: { id: Id<"job">; kind: DatabaseJobKind },
  material: DatabaseMaterial,
): Job {
  const { id: databaseId, accountId } = material.database;
  switch (kind) {
    case "database.provision":
    case "database.start":
    case "database.restart":
      return { id, kind, args: { database: specOf(ctx, material, validLogins) } };
    case "database.rotate":
      return { id, kind, args: { database: specOf(ctx, material, loginsToBe) } };
    case "database.stop":
    case "database.delete":
      return { id, kind, args: { databaseId, accountId } };
  }
}

const specOf = (
  ctx: Ctx,
  { database, pack }: DatabaseMaterial,
  logins: typeof validLogins,
): DatabaseSpec => ({
  databaseId: database.id,
  accountId: database.accountId,
  type: database.type,
  image: database.image,
  hostname: databaseHostname(database.name),
  databaseName: database.databaseName,
  adminPassword: openAdminPassword(ctx, database),
  logins: logins(ctx, database),
  limits: { memoryMb: pack.memoryMb, cpuMilli: pack.cpuMilli, pids: pack.pids },
});

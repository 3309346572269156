import type { DatabaseSpec, Job } from "../../../protocol/agent/jobs.ts";
import type { Id } from "../../../protocol/ids.ts";
import type { Ctx } from "../../ctx.ts";
import type { PlainDatabaseJobKind } from "../../../protocol/agent/jobs.ts";
import type { packs } from "../../db/schema.ts";
import { databaseHostname } from "../../domain/database-engines.ts";
import { loginsToBe, openAdminPassword, validLogins } from "./logins.ts";
import type { DatabaseRow } from "../../db/rows.ts";

export type DatabaseMaterial = {
  database: DatabaseRow;
  pack: typeof packs.$inferSelect;
  /** Each by the restore that made it; null: the first. */
  replacedVolumes?: (string | null)[];
};

/** The job as it travels: passwords are opened only here, on their way to the host. */
export function databaseFrameOf(
  ctx: Ctx,
  { id, kind }: { id: Id<"job">; kind: PlainDatabaseJobKind },
  material: DatabaseMaterial,
): Job {
  const { replacedVolumes } = material;
  const { id: databaseId, accountId } = material.database;
  switch (kind) {
    case "database.start":
      return {
        id,
        kind,
        args: {
          database: specOf(ctx, material, validLogins),
          ...(replacedVolumes && replacedVolumes.length > 0 && { replacedVolumes }),
        },
      };
    case "database.provision":
    case "database.restart":
      return { id, kind, args: { database: specOf(ctx, material, validLogins) } };
    case "database.rotate":
      return { id, kind, args: { database: specOf(ctx, material, loginsToBe) } };
    case "database.expose":
      return {
        id,
        kind,
        args: { database: specOf(ctx, material), generation: material.database.publicGeneration },
      };
    case "database.stop":
    case "database.delete":
      return { id, kind, args: { databaseId, accountId } };
  }
}

export const specOf = (
  ctx: Ctx,
  { database, pack }: DatabaseMaterial,
  logins = validLogins,
): DatabaseSpec => ({
  databaseId: database.id,
  accountId: database.accountId,
  type: database.type,
  image: database.image,
  hostname: databaseHostname(database.name),
  ...(database.volume !== null && { volume: database.volume }),
  databaseName: database.databaseName,
  adminPassword: openAdminPassword(ctx, database),
  logins: logins(ctx, database),
  limits: { memoryMb: pack.memoryMb, cpuMilli: pack.cpuMilli, pids: pack.pids, diskGb: pack.diskGb },
  ...(database.publicEnabled &&
    database.publicPort !== null && {
      publicAccess: { port: database.publicPort, allow: database.publicAllow },
    }),
});

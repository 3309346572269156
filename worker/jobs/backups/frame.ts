import type { DatabaseSpec, Job } from "../../../protocol/agent/jobs.ts";
import type { StoredBackup } from "../../../protocol/agent/backups.ts";
import type { Ctx } from "../../ctx.ts";
import type { jobs, packs } from "../../db/schema.ts";
import type { BackupJobKind } from "../../../protocol/agent/jobs.ts";
import type { BackupRow } from "../../db/rows.ts";

type Material = {
  job: typeof jobs.$inferSelect & { kind: BackupJobKind };
  backup: BackupRow;
  pack: typeof packs.$inferSelect;
  /** Of the job's database; none for a verification, whose database may be gone. */
  database: DatabaseSpec | null;
  serving: boolean;
};

/** The job as it travels; null where there is nothing to do it to. */
export function backupFrameOf(ctx: Ctx, { job, backup, pack, database, serving }: Material): Job | null {
  const { id, kind, attempt } = job;
  switch (kind) {
    case "database.backup":
      return database && { id, kind, args: { database, backupId: backup.id, attempt, serving } };
    case "database.verify": {
      const stored = storedOf(backup, attempt);
      return stored && { id, kind, args: { like: likeOf(ctx, backup, pack), backup: stored } };
    }
    case "database.restore": {
      const stored = storedOf(backup, attempt);
      return stored && database && { id, kind, args: { database, backup: stored, serving } };
    }
  }
}

function storedOf(row: BackupRow, attempt: number): StoredBackup | null {
  const { id: backupId, databaseName, sizeBytes, sha256, fingerprintSha256 } = row;
  if (sizeBytes === null || sha256 === null || fingerprintSha256 === null) return null;
  return { backupId, attempt, databaseName, sizeBytes, sha256, fingerprintSha256 };
}

/** A server like the one it was made of, with passwords of its own: nobody but the agent ever reaches it. */
function likeOf(ctx: Ctx, row: BackupRow, { memoryMb, cpuMilli, pids }: Material["pack"]): DatabaseSpec {
  const password = () => Buffer.from(ctx.random(24)).toString("hex");
  return {
    databaseId: row.databaseId,
    accountId: row.accountId,
    type: row.type,
    image: row.image,
    hostname: "localhost",
    databaseName: row.databaseName,
    adminPassword: password(),
    logins: [{ username: `${row.databaseName}_0`, password: password() }],
    limits: { memoryMb, cpuMilli, pids },
  };
}

import type { Backup } from "../../../protocol/api/backups.ts";
import type { BackupRow } from "../../db/rows.ts";

export const backupView = (row: BackupRow): Backup => ({
  id: row.id,
  databaseId: row.databaseId,
  databaseName: row.name,
  type: row.type,
  version: row.version,
  status: row.status,
  trigger: row.trigger,
  sizeBytes: row.sizeBytes,
  sha256: row.sha256,
  tables: row.tables,
  rows: row.rows,
  error: row.error,
  createdAt: row.createdAt.toISOString(),
  finishedAt: row.finishedAt?.toISOString() ?? null,
  verifiedAt: row.verifiedAt?.toISOString() ?? null,
  expiresAt: row.expiresAt?.toISOString() ?? null,
});

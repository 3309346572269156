import type { Backup, BackupsFailing } from "../../../protocol/api/backups.ts";
import type { BackupRow } from "../../db/rows.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { volumeOf } from "../../domain/volume-keys.ts";

export function backupView(row: BackupRow): Backup {
  const volume = volumeOf(row.databaseId);
  return {
    id: row.id,
    databaseId: volume ? null : row.databaseId,
    databaseName: volume ? null : row.name,
    volume: volume && { siteId: volume.siteId, siteName: row.name, name: volume.name },
    consistent: volume ? row.consistent : row.sha256 === null ? null : true,
    ...shared(row, volume !== null),
  };
}

type Counted = {
  backupFailures: number;
  backupsFailingSince: Date | null;
  backupFailureReason: string | null;
};

/** null: its scheduled backups do not fail. */
export const failingView = (row: Counted): BackupsFailing | null =>
  row.backupsFailingSince && {
    since: isoTime(row.backupsFailingSince),
    times: row.backupFailures,
    reason: row.backupFailureReason ?? "",
  };

const shared = (row: BackupRow, isVolume: boolean) => ({
  type: row.type,
  version: row.version,
  status: row.status,
  trigger: row.trigger,
  sizeBytes: row.sizeBytes,
  sha256: row.sha256,
  tables: isVolume ? null : row.tables,
  rows: row.rows,
  error: row.error,
  createdAt: isoTime(row.createdAt),
  finishedAt: isoTime(row.finishedAt),
  verifiedAt: isoTime(row.verifiedAt),
  expiresAt: isoTime(row.expiresAt),
});

import type { VolumeBackups } from "../../../protocol/api/site-volumes.ts";
import type { siteVolumes } from "../../db/schema.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { failingView } from "../backups/view.ts";

export const volumeBackupsView = (row: typeof siteVolumes.$inferSelect): VolumeBackups => ({
  schedule: row.backupSchedule,
  hourUtc: row.backupHourUtc,
  keep: row.backupKeep,
  nextAt: isoTime(row.nextBackupAt),
  failing: failingView(row),
});

import { group } from "../../command.ts";
import { backUpVolume, listVolumeBackups, restoreVolume, scheduleVolumeBackups } from "./backups.ts";
import { copyFile, listFiles, printFile } from "./browse.ts";
import { listVolumes } from "./list.ts";
import { deleteVolume } from "./remove.ts";

export const volumes = group("volumes", "A site's folders that survive deployments", [
  listVolumes,
  listFiles,
  printFile,
  copyFile,
  backUpVolume,
  listVolumeBackups,
  scheduleVolumeBackups,
  restoreVolume,
  deleteVolume,
]);

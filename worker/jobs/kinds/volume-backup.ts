import { volumeOf } from "../../domain/volume-keys.ts";
import { backupStored, databaseBackup } from "./database-backup.ts";
import { backupOf, siteIdOf, type Kind } from "./kind.ts";

export const volumeBackup: Kind<"volume.backup"> = {
  args(_ctx, material) {
    const { id, databaseId } = backupOf(material);
    return {
      siteId: siteIdOf(material.job),
      volume: volumeOf(databaseId)?.name ?? "",
      backupId: id,
      attempt: material.job.attempt,
    };
  },

  succeeded: (ctx, end, { consistent }) => backupStored(ctx, end, "volume", consistent),

  failed: (ctx, end, failure) => databaseBackup.failed(ctx, end, failure),
};

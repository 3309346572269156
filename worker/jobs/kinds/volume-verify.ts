import { storedVolumeOf } from "../backups/stored.ts";
import { databaseVerify } from "./database-verify.ts";
import { backupOf, type Kind } from "./kind.ts";

/** The record of a verdict is that of a database's backup. */
export const volumeVerify: Kind<"volume.verify"> = {
  ...databaseVerify,
  args: (_ctx, material) => ({ backup: storedVolumeOf(backupOf(material), material.job.attempt) }),
};

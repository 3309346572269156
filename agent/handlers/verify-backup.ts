import { DamageError } from "../databases/backups/damage.ts";
import { rebuild } from "../databases/backups/rebuild.ts";
import type { Handler } from "./handler.ts";

/** Reports a verdict on the backup; a problem of the host is a failure, not a verdict. */
export const verifyBackup: Handler<"database.verify"> = async (host, { like, backup }, job) => {
  try {
    await rebuild(host, { spec: like, backup, volume: null, job });
    return { damage: null };
  } catch (error) {
    if (error instanceof DamageError) return { damage: error.message };
    throw error;
  }
};

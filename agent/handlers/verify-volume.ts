import { join } from "node:path";
import { DamageError } from "../databases/backups/damage.ts";
import { removeTree } from "../remove-tree.ts";
import { rebuildVolume } from "../volumes/rebuild.ts";
import type { Handler } from "./handler.ts";

/** Reports a verdict on the backup; a problem of the host is a failure, not a verdict. */
export const verifyVolume: Handler<"volume.verify"> = async (host, { backup }, job) => {
  const folder = join(host.workDirectory, `${job.jobId}-${job.attempt}`);
  try {
    await rebuildVolume(host, folder, backup, job);
    return { damage: null };
  } catch (error) {
    if (error instanceof DamageError) return { damage: error.message };
    throw error;
  } finally {
    await removeTree(folder);
  }
};

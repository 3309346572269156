import { rename, stat } from "node:fs/promises";
import { DamageError } from "../databases/backups/damage.ts";
import { siteLabels, volumeName } from "../docker/specs.ts";
import { label } from "../docker/labels.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import { tolerance } from "../running/disk-guard.ts";
import { besideOf, volumeFolder } from "../volumes/folder.ts";
import { removeTree } from "../remove-tree.ts";
import { rebuildVolume } from "../volumes/rebuild.ts";
import { usersOf } from "../volumes/stand-still.ts";
import type { Handler } from "./handler.ts";

const bytesPerGb = 1024 ** 3;

/** Two renames at the end replace the volume's files; a repeated job completes those of one that was interrupted. */
export const restoreVolume: Handler<"volume.restore"> = async (host, args, job) => {
  const { siteId, accountId, volume, backup, diskGb } = args;
  const { engine } = host;
  await engine.ensureVolume(volumeName(siteId, volume), {
    ...siteLabels(siteId),
    [label.agent]: host.agentId,
    [label.account]: accountId,
    [label.volume]: volume,
  });
  const folder = await volumeFolder(engine, siteId, volume);
  if (folder === null) throw new Error(`The engine does not list the volume ${volume} of ${siteId}`);
  const { restored, replaced } = besideOf(folder);
  if (!(await exists(folder))) await rename(replaced, folder);
  // What cannot be removed goes with the volume.
  await removeTree(replaced).catch(() => rename(replaced, `${replaced}-${job.jobId}`));
  try {
    await demandUnused();
    await rebuildVolume(host, restored, backup, job, diskGb * bytesPerGb * tolerance);
    job.signal.throwIfAborted();
    await demandUnused();
    await rename(folder, replaced);
    await rename(restored, folder);
  } catch (error) {
    // The second rename may fail: without the first one undone, the site could not start.
    if (!(await exists(folder))) await rename(replaced, folder);
    await removeTree(restored);
    if (error instanceof DamageError) return { damage: error.message };
    throw error;
  }
  await removeTree(replaced).catch((error: unknown) => {
    log("warn", "What a volume held before its restore was not removed", { siteId, volume, error });
  });
  return { damage: null };

  async function demandUnused(): Promise<void> {
    if ((await usersOf(engine, siteId, volume)).length > 0)
      throw new JobError(
        "The site or one of its commands uses the volume: stop the site, wait for its commands, then restore again.",
      );
  }
};

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

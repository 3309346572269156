import { DamageError } from "../databases/backups/damage.ts";
import { rebuild } from "../databases/backups/rebuild.ts";
import { containerName, databaseLabels, volumeName } from "../docker/database-objects.ts";
import { DataGone } from "../databases/data.ts";
import { bringUp, takeDown } from "../databases/server.ts";
import { isShutdown } from "../failure.ts";
import { JobError } from "../job.ts";
import type { Handler } from "./handler.ts";
import { label } from "../docker/labels.ts";

/**
 * Until the new volume is proven the old one serves; then the server changes over. Which volume is the right one is the
 * control plane's record, and the old one goes once that names the new: an end at any moment leaves one of the two. Whoever
 * reports a failure has changed back, or the record would name another volume than the one in use. Where the old one is
 * gone, this is the way to have a database again.
 */
export const restoreDatabase: Handler<"database.restore"> = async (host, args, job) => {
  const { database, backup, serving } = args;
  const { databaseId, accountId } = database;
  const next = { ...database, volume: job.jobId };
  const volume = volumeName(databaseId, next.volume);
  const present = await host.engine.inspectContainer(containerName(databaseId));
  // An earlier attempt had changed over, and was cut off before it could say so.
  if (present?.labels[label.volume] !== volume) {
    if (serving && !present?.running) await bringBack(job.signal);
    await host.engine.removeVolume(volume);
    await host.engine.ensureVolume(volume, databaseLabels(host.agentId, databaseId, accountId));
    try {
      await rebuild(host, { spec: next, backup, volume, job });
    } catch (error) {
      await host.engine.removeVolume(volume);
      if (error instanceof DamageError) return { damage: error.message };
      throw error;
    }
  }
  try {
    return { ...(await bringUp(host, next, job.signal)), damage: null, volume: next.volume };
  } catch (error) {
    // An agent that ends now finds the new one at its next attempt.
    if (isShutdown(job.signal)) throw error;
    await takeDown(host, databaseId);
    // Also where the job is to end: then it has the time that it may take to tidy up.
    if (serving) await bringBack(new AbortController().signal);
    await host.engine.removeVolume(volume);
    throw error instanceof JobError
      ? error
      : new JobError("The restored database did not start: try again.", { cause: error });
  }

  async function bringBack(signal: AbortSignal): Promise<void> {
    await bringUp(host, database, signal).catch((error: unknown) => {
      if (!(error instanceof DataGone)) throw error;
    });
  }
};

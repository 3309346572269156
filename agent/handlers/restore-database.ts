import { DamageError } from "../databases/backups/damage.ts";
import { rebuild, removeCopy } from "../databases/backups/rebuild.ts";
import { containerName, databaseLabels, volumeName } from "../docker/database-objects.ts";
import { bringUp, takeDown } from "../databases/server.ts";
import { isShutdown } from "../failure.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import type { Handler } from "./handler.ts";
import { label } from "../docker/labels.ts";

/** A server that takes longer goes on starting meanwhile. */
const bringBackMs = 60_000;

/**
 * The old volume serves until the new one is proven; then the server switches over. The control plane's record
 * decides which volume is right, and the old one is removed only once the record names the new one, so that a crash
 * at any moment leaves one of them. A failure is reported only after switching back; otherwise the record would name
 * a volume that is not in use. If the old volume is lost, a restore recovers the database.
 */
export const restoreDatabase: Handler<"database.restore"> = async (host, args, job) => {
  const { database, backup, serving } = args;
  const { databaseId, accountId } = database;
  const next = { ...database, volume: job.jobId };
  const volume = volumeName(databaseId, next.volume);
  const present = await host.engine.inspectContainer(containerName(databaseId));
  // An earlier attempt switched over but was interrupted before it could report.
  if (present?.labels[label.volume] !== volume) {
    if (serving && !present?.running) await bringBack(job.signal);
    await removeCopy(host, job.jobId);
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
    // On shutdown, the next attempt finds the new volume in use.
    if (isShutdown(job.signal)) throw error;
    await takeDown(host, databaseId);
    // Not bound to the job's signal: a cancelled job has time for cleaning up.
    if (serving) await bringBack(new AbortController().signal);
    await host.engine.removeVolume(volume);
    throw error instanceof JobError
      ? error
      : new JobError("The restored database did not start: try again.", { cause: error });
  }

  /** A restore also helps a database whose server no longer starts: it does not depend on this. */
  async function bringBack(signal: AbortSignal): Promise<void> {
    const patience = AbortSignal.timeout(bringBackMs);
    await bringUp(host, database, AbortSignal.any([signal, patience])).catch((error: unknown) => {
      signal.throwIfAborted();
      log("warn", "A database's old data did not come up around its restore", { databaseId, error });
    });
  }
};

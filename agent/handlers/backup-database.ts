import { copiers } from "../databases/index.ts";
import { endStrays } from "../databases/backups/strays.ts";
import { uploadParts, type Uploaded } from "../databases/backups/upload.ts";
import { containerName } from "../docker/database-objects.ts";
import { ServerRefusal } from "../databases/server-refusal.ts";
import { bringUp, takeDown } from "../databases/server.ts";
import { diskIsFull, saysDiskFull } from "../docker/disk-full.ts";
import { JobError } from "../job.ts";
import type { Handler } from "./handler.ts";

/** A stopped database is started for the backup and stopped again. */
export const backupDatabase: Handler<"database.backup"> = async (host, args, job) => {
  const { database, backupId, attempt, serving } = args;
  const { signal } = job;
  try {
    const before = await host.engine.inspectContainer(containerName(database.databaseId));
    if (!before?.running) await bringUp(host, database, signal);
    const found = await host.engine.inspectContainer(containerName(database.databaseId));
    if (!found?.running) throw new JobError("The database is not running: start it, then try again.");
    await endStrays(host.engine, found.id);
    const lease = { backupId, jobId: job.jobId, attempt };
    let uploaded: Uploaded | undefined;
    try {
      const fingerprint = await copiers[database.type].copy(
        { engine: host.engine, id: found.id, spec: database, signal },
        async (bytes) => void (uploaded = await uploadParts(host.backups, lease, bytes, signal)),
      );
      if (!uploaded) throw new Error("Nothing was uploaded");
      await host.backups.complete(lease, { ...uploaded, fingerprint }, signal);
    } catch (error) {
      await endStrays(host.engine, found.id).catch(() => undefined);
      signal.throwIfAborted();
      if (error instanceof JobError) throw error;
      throw new JobError(whyNot(error), { cause: error });
    }
    return {};
  } finally {
    // Use the requested state, not the one found: an earlier attempt may have started the database.
    if (!serving) await takeDown(host, database.databaseId);
  }
};

function whyNot(error: unknown): string {
  if (saysDiskFull([String(error)])) return diskIsFull("back it up again");
  const reason = error instanceof ServerRefusal ? error.reason.replace(/\.$/, "") : "";
  return reason === ""
    ? "The database could not be copied: try again, or ask the operator about its host."
    : `The database could not be copied: ${reason}. Try again, or ask the operator about its host.`;
}

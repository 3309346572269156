import { uploadParts } from "../databases/backups/upload.ts";
import { diskIsFull, saysDiskFull } from "../docker/disk-full.ts";
import { JobError } from "../job.ts";
import { standStill, usersOf, type Standstill } from "../volumes/stand-still.ts";
import { archive, bytesOf, TarError } from "../volumes/archive.ts";
import { volumeFolder } from "../volumes/folder.ts";
import type { Handler } from "./handler.ts";

/** What uses the volume stands still while it is read, if that takes seconds. */
export const backupVolume: Handler<"volume.backup"> = async (
  host,
  { siteId, volume, backupId, attempt },
  job,
) => {
  const { engine } = host;
  const { signal, jobId } = job;
  const folder = await volumeFolder(engine, siteId, volume);
  if (folder === null)
    throw new JobError(
      `The host has no volume ${volume} of this site yet: deploy the site with it, then back it up.`,
    );
  let still: Standstill | undefined;
  let consistent = true;
  const read = archive(folder, signal, {
    async beforeReading() {
      still = await standStill(engine, await usersOf(engine, siteId, volume));
    },
    async afterReading() {
      consistent = (await still?.end()) ?? true;
    },
  });
  try {
    const lease = { backupId, jobId, attempt };
    const uploaded = await uploadParts(host.backups, lease, read.bytes, signal);
    const diskBytes = await bytesOf(folder, signal);
    const fingerprint = {
      ...(await read.contents()),
      settings: [{ name: "disk_bytes", value: String(diskBytes) }],
    };
    await host.backups.complete(lease, { ...uploaded, fingerprint }, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TarError)) throw error;
    if (saysDiskFull([error.message])) throw new JobError(diskIsFull("back it up again"), { cause: error });
    throw new JobError(`The volume could not be read: ${error.message}`, { cause: error });
  }
  return { consistent };
};

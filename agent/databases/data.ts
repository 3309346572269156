import { readdir } from "node:fs/promises";
import tar from "tar-stream";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import type { Engine } from "../docker/engine.ts";
import { fileIn } from "../docker/files-in.ts";
import type { Host } from "../host.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import { volumeLabels, volumeName } from "../docker/database-objects.ts";
import { tlsFolder } from "./database-engine.ts";
import { markFile, permissionFile } from "./entrypoint.ts";
import { engines } from "./index.ts";
import { label } from "../docker/labels.ts";

/** The volume or its data is missing: no server is started, because it would create an empty database. */
export class DataGone extends JobError {
  override name = "DataGone";

  constructor() {
    super(dataGone);
  }
}
export const dataGone =
  "Its data is not on this host: restore a backup into it, or ask the operator to bring the data back and then start it.";

/** Checked before the container is created, because the engine creates missing volumes. @throws DataGone */
export async function demandVolume({ engine, agentId }: Host, spec: DatabaseSpec): Promise<void> {
  const name = volumeName(spec.databaseId, spec.volume);
  const all = await engine.volumes(volumeLabels(agentId, spec.databaseId));
  if (!all.some((volume) => volume.name === name)) throw new DataGone();
}

/**
 * Checked before the server starts. Data without a mark was used by an earlier agent or has just been restored.
 * @throws DataGone
 */
export async function demandData({ engine }: Host, id: string, spec: DatabaseSpec): Promise<void> {
  const { dataPath, dataFiles } = engines[spec.type];
  const marked = await markIn(engine, id, spec);
  if (marked === spec.databaseId) return;
  if (marked !== "") throw new DataGone();
  for (const name of dataFiles) {
    const found = await engine.readFiles(id, `${dataPath}/${name}`);
    found?.destroy();
    if (found) return;
  }
  throw new DataGone();
}

/**
 * The same check for restarting a container: in an empty directory an image's server would initialize a new database.
 */
export async function isEmptied(
  engine: Pick<Engine, "volumes">,
  labels: Readonly<Record<string, string>>,
): Promise<boolean> {
  const { [label.agent]: agentId = "", [label.database]: databaseId = "", [label.volume]: name } = labels;
  if (name === undefined) return false;
  const volume = (await engine.volumes(volumeLabels(agentId, databaseId))).find((one) => one.name === name);
  return !volume || (await readdir(volume.folder).catch(() => null))?.length === 0;
}

/** Set before the first start, and cleared once the server has initialized. */
export async function permitBeginning({ engine }: Host, id: string, isPermitted: boolean): Promise<void> {
  const archive = tar.pack();
  archive.entry({ name: tlsFolder, type: "directory", mode: 0o755 });
  archive.entry({ name: permissionFile, mode: 0o644 }, isPermitted ? "yes" : "");
  archive.finalize();
  await engine.writeFiles(id, "/", archive);
}

/** Marks initialized data: from now on an empty directory is a loss. If the disk is full, the next start retries. */
export async function markData(host: Host, id: string, spec: DatabaseSpec): Promise<void> {
  try {
    if (!(await isMarked(host, id, spec))) {
      const archive = tar.pack();
      archive.entry({ name: markFile, mode: 0o644 }, spec.databaseId);
      archive.finalize();
      await host.engine.writeFiles(id, engines[spec.type].dataPath, archive);
    }
    await permitBeginning(host, id, false);
  } catch (error) {
    log("warn", "A database's data was not marked", { databaseId: spec.databaseId, error });
  }
}

export const isMarked = async ({ engine }: Host, id: string, spec: DatabaseSpec): Promise<boolean> =>
  (await markIn(engine, id, spec)) !== "";

const markIn = async (engine: Host["engine"], id: string, { type }: DatabaseSpec): Promise<string> =>
  (await fileIn(engine, id, `${engines[type].dataPath}/${markFile}`)).trim();

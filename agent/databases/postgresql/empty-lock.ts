import { lstat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "../../docker/engine.ts";
import { label } from "../../docker/labels.ts";

/** PostgreSQL's lock file in the data directory. */
const lockFile = "postmaster.pid";

/**
 * PostgreSQL killed while creating its lock file leaves an empty one and then never starts again. Removes it; returns
 * whether there was one. Call only while the server does not run; no other server uses its volume.
 */
export async function removeEmptyLock(
  engine: Pick<Engine, "volumes">,
  labels: Readonly<Record<string, string>>,
): Promise<boolean> {
  const { [label.agent]: agentId = "", [label.database]: databaseId = "", [label.volume]: name } = labels;
  if (name === undefined) return false;
  const volumes = await engine.volumes({ [label.agent]: agentId, [label.database]: databaseId });
  const volume = volumes.find((one) => one.name === name);
  if (!volume) return false;
  const path = join(volume.folder, lockFile);
  const found = await lstat(path).catch(() => null);
  if (!found?.isFile() || found.size > 0) return false;
  await unlink(path);
  return true;
}

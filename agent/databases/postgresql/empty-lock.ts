import { lstat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "../../docker/engine.ts";
import { label } from "../../docker/labels.ts";

/** PostgreSQL's, in the folder of its data. */
const lockFile = "postmaster.pid";

/**
 * Whether PostgreSQL was killed in the instant in which it made its lock: it leaves an empty one, and then refuses to start
 * for ever. The file is gone. Only while the server does not run; no other one has its volume.
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

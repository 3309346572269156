import { readdir, readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerState } from "./engine.ts";
import { controlFolder } from "./usage.ts";

const tmpfs = 0x01021994;
/** A container may hold very many files open. */
const lookMs = 5000;

/**
 * Bytes of deleted files that a container's processes still hold open: they use disk space until they are closed, and
 * no directory walk finds them.
 */
export async function deletedBytes(
  container: Pick<ContainerState, "id" | "pid">,
  root = "/",
): Promise<number> {
  const endsAt = performance.now() + lookMs;
  const found = new Map<string, number>();
  for (const process of await processesOf(container, root)) {
    const folder = join(root, "proc", process, "fd");
    for (const name of await readdir(folder).catch(() => [])) {
      if (performance.now() > endsAt) break;
      const file = join(folder, name);
      const is = await stat(file).catch(() => null);
      if (!is?.isFile() || is.nlink > 0 || found.has(`${is.dev}:${is.ino}`)) continue;
      // Files in memory count towards the container's memory.
      const isInMemory = await statfs(file).then(
        ({ type }) => type === tmpfs,
        () => true,
      );
      found.set(`${is.dev}:${is.ino}`, isInMemory ? 0 : is.blocks * 512);
    }
  }
  return [...found.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Finds them by the container's control group, version 2 or that of `pids`. */
async function processesOf(container: Pick<ContainerState, "id" | "pid">, root: string): Promise<string[]> {
  try {
    const found = controlFolder(container, "pids", root);
    const text = found && (await readFile(join(found.folder, "cgroup.procs"), "utf8"));
    return text?.split("\n").filter(Boolean) ?? [];
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

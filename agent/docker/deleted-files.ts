import { readdir, readFile, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerState } from "./engine.ts";

const tmpfs = 0x01021994;
/** A container may hold very many files open. */
const lookMs = 5000;

/**
 * Bytes of files that a container's processes hold open though they have no name any more: they take room on the disk until they are
 * closed, and no walk over its folders finds them.
 */
export async function deletedBytes(
  { id, pid }: Pick<ContainerState, "id" | "pid">,
  root = "/",
): Promise<number> {
  const endsAt = performance.now() + lookMs;
  const found = new Map<string, number>();
  for (const process of await processesOf(id, pid, root)) {
    const folder = join(root, "proc", process, "fd");
    for (const name of await readdir(folder).catch(() => [])) {
      if (performance.now() > endsAt) break;
      const file = join(folder, name);
      const is = await stat(file).catch(() => null);
      if (!is?.isFile() || is.nlink > 0 || found.has(`${is.dev}:${is.ino}`)) continue;
      // What is in memory takes the container's own.
      const isInMemory = await statfs(file).then(
        ({ type }) => type === tmpfs,
        () => true,
      );
      found.set(`${is.dev}:${is.ino}`, isInMemory ? 0 : is.blocks * 512);
    }
  }
  return [...found.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** By its control group, of version 2 or that of `pids`. */
async function processesOf(id: string, pid: number, root: string): Promise<string[]> {
  if (pid === 0) return [];
  const read = (...path: string[]) => readFile(join(root, ...path), "utf8").catch(() => "");
  const groups = (await read("proc", String(pid), "cgroup")).split("\n").map((line) => line.split(":"));
  const own = groups.find(
    ([, controllers = "", path = ""]) => path.includes(id) && /^(?:pids)?$/.test(controllers),
  );
  const [, controllers = "", ...path] = own ?? [];
  if (!own) return [];
  return (await read("sys/fs/cgroup", controllers, path.join(":"), "cgroup.procs"))
    .split("\n")
    .filter(Boolean);
}

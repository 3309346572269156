import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux keeps what is in it in memory; a container may have 64 MB of it only. */
const shared = "/dev/shm";
const prefix = "berth-test-";

/**
 * A folder for temporary files of this process: Worker tests write many small databases, which takes a fifth of their time on a disk.
 * It is removed when the process ends; what a killed one has left is removed by the next. @returns the system's own without a GB of memory
 */
export function memoryFolder(): string {
  if (!existsSync(shared)) return tmpdir();
  for (const name of readdirSync(shared))
    if (name.startsWith(prefix) && !existsSync(join("/proc", name.slice(prefix.length))))
      rmSync(join(shared, name), { recursive: true, force: true });
  const { bavail, bsize } = statfsSync(shared);
  if (bavail * bsize < 2 ** 30) return tmpdir();
  const made = join(shared, prefix + process.pid);
  mkdirSync(made, { recursive: true });
  process.once("exit", () => rmSync(made, { recursive: true, force: true }));
  return made;
}

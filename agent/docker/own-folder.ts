import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerState } from "./engine.ts";

/**
 * The directory of a container's writable layer. With containerd's image store the engine does not report it, but a
 * running container's mounts do. null if neither is known.
 */
export async function ownFolderOf(
  { id, ownFolder, pid }: Pick<ContainerState, "id" | "ownFolder" | "pid">,
  root = "/",
): Promise<string | null> {
  if (ownFolder !== null || pid === 0) return ownFolder;
  const read = (name: string) => readFile(join(root, "proc", String(pid), name), "utf8").catch(() => "");
  const [groups, mounts] = [await read("cgroup"), await read("mountinfo")];
  // The process id may have been reused.
  return groups.includes(id) ? upperFolder(mounts) : null;
}

/** The upper directory of the last overlay at `/`, by proc_pid_mountinfo(5). */
function upperFolder(mounts: string): string | null {
  const found = mounts.split("\n").flatMap((line) => {
    const [place = "", kind = ""] = line.split(" - ");
    const [type, , options = ""] = kind.split(" ");
    return place.split(" ")[4] === "/" && type === "overlay" ? [options] : [];
  });
  const path = found
    .at(-1)
    ?.split(",")
    .find((option) => option.startsWith("upperdir="));
  const unescaped = path
    ?.slice("upperdir=".length)
    .replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  // Docker's own driver may use a relative path.
  return unescaped?.startsWith("/") ? unescaped : null;
}

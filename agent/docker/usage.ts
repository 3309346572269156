import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Counters since the container started, and its present memory. Without a limit, that is NaN or more than any machine has. */
export type Usage = {
  cpuNanoseconds: number;
  memoryBytes: number;
  memoryLimitBytes: number;
  receivedBytes: number;
  sentBytes: number;
};

/**
 * Reads a container's resource usage from the kernel's own files: the engine's statistics cost twenty times as much.
 * null if the process is not (or no longer) this container's. Synchronous: the kernel answers from memory in
 * microseconds, and asynchronous reads cost ten times as much.
 */
export function readUsage(containerId: string, pid: number, root = "/"): Usage | null {
  const read = (...path: string[]) => readFileSync(join(root, ...path), "utf8");
  try {
    const groups = controlGroups(read("proc", String(pid), "cgroup"));
    if (![...groups.values()].some((path) => path.includes(containerId))) return null;
    const usage = groups.has("memory") ? versionOne(read, groups) : versionTwo(read, groups.get("") ?? "");
    return { ...usage, ...traffic(read("proc", String(pid), "net", "dev")) };
  } catch (error) {
    if (hasEnded(error)) return null;
    throw error;
  }
}

/** Whether the error means that the container ended while its files were read. */
export function hasEnded(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ESRCH" || code === "ENODEV";
}

type Read = (...path: string[]) => string;
type OwnUsage = Pick<Usage, "cpuNanoseconds" | "memoryBytes" | "memoryLimitBytes">;

const mount = ["sys", "fs", "cgroup"];

/**
 * The directory of a container's control group for this controller, and the cgroup version; null if the process is
 * not (or no longer) this container's.
 */
export function controlFolder(
  { id, pid }: { id: string; pid: number },
  controller: string,
  root = "/",
): { version: 1 | 2; folder: string } | null {
  if (pid === 0) return null;
  const groups = controlGroups(readFileSync(join(root, "proc", String(pid), "cgroup"), "utf8"));
  const one = groups.get(controller);
  const path = one ?? groups.get("") ?? "";
  if (!path.includes(id)) return null;
  return one === undefined
    ? { version: 2, folder: join(root, ...mount, path) }
    : { version: 1, folder: join(root, ...mount, controller, path) };
}

/** Controller → path; the empty name is cgroup v2's. */
function controlGroups(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const name of controllers?.split(",") ?? []) groups.set(name, path ?? "");
  }
  return groups;
}

function versionOne(read: Read, groups: Map<string, string>): OwnUsage {
  const memory = groups.get("memory") ?? "";
  const used = Number(read(...mount, "memory", memory, "memory.usage_in_bytes"));
  const stat = read(...mount, "memory", memory, "memory.stat");
  return {
    cpuNanoseconds: Number(read(...mount, "cpuacct", groups.get("cpuacct") ?? "", "cpuacct.usage")),
    memoryBytes: Math.max(0, used - field(stat, "total_inactive_file")),
    memoryLimitBytes: Number(read(...mount, "memory", memory, "memory.limit_in_bytes")),
  };
}

function versionTwo(read: Read, path: string): OwnUsage {
  const used = Number(read(...mount, path, "memory.current"));
  const stat = read(...mount, path, "memory.stat");
  return {
    cpuNanoseconds: field(read(...mount, path, "cpu.stat"), "usage_usec") * 1000,
    // Reclaimable pages do not count, as in `docker stats`.
    memoryBytes: Math.max(0, used - field(stat, "inactive_file")),
    memoryLimitBytes: Number(read(...mount, path, "memory.max")),
  };
}

const field = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);

/** Sums all devices but the loopback: name, eight columns received, eight columns sent. */
function traffic(devices: string): Pick<Usage, "receivedBytes" | "sentBytes"> {
  let [receivedBytes, sentBytes] = [0, 0];
  for (const line of devices.split("\n")) {
    const [, name, columns = ""] = /^\s*(\S+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || name === "lo") continue;
    const numbers = columns.split(/\s+/).map(Number);
    receivedBytes += numbers[0] ?? 0;
    sentBytes += numbers[8] ?? 0;
  }
  return { receivedBytes, sentBytes };
}

import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Counters since the container started, and the memory it holds now. */
export type Usage = {
  cpuNanoseconds: number;
  memoryBytes: number;
  receivedBytes: number;
  sentBytes: number;
};

/**
 * What a container uses, from the kernel's own files: the engine's statistics cost it twenty times as much. null when
 * the process is not (any more) this container's.
 */
export async function readUsage(containerId: string, pid: number, root = "/"): Promise<Usage | null> {
  const read = (...path: string[]) => readFile(join(root, ...path), "utf8");
  try {
    const groups = controlGroups(await read("proc", String(pid), "cgroup"));
    if (![...groups.values()].some((path) => path.includes(containerId))) return null;
    const [usage, devices] = await Promise.all([
      groups.has("memory") ? versionOne(read, groups) : versionTwo(read, groups.get("") ?? ""),
      read("proc", String(pid), "net", "dev"),
    ]);
    return { ...usage, ...traffic(devices) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // It ended while it was read.
    if (code === "ENOENT" || code === "ESRCH" || code === "ENODEV") return null;
    throw error;
  }
}

type Read = (...path: string[]) => Promise<string>;
type OwnUsage = Pick<Usage, "cpuNanoseconds" | "memoryBytes">;

const mount = ["sys", "fs", "cgroup"];

/** Controller → path; the empty name is cgroup v2's. */
function controlGroups(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const name of controllers?.split(",") ?? []) groups.set(name, path ?? "");
  }
  return groups;
}

async function versionOne(read: Read, groups: Map<string, string>): Promise<OwnUsage> {
  const memory = groups.get("memory") ?? "";
  const [cpu, used, stat] = await Promise.all([
    read(...mount, "cpuacct", groups.get("cpuacct") ?? "", "cpuacct.usage"),
    read(...mount, "memory", memory, "memory.usage_in_bytes"),
    read(...mount, "memory", memory, "memory.stat"),
  ]);
  return {
    cpuNanoseconds: Number(cpu),
    memoryBytes: Math.max(0, Number(used) - field(stat, "total_inactive_file")),
  };
}

async function versionTwo(read: Read, path: string): Promise<OwnUsage> {
  const [cpu, used, stat] = await Promise.all([
    read(...mount, path, "cpu.stat"),
    read(...mount, path, "memory.current"),
    read(...mount, path, "memory.stat"),
  ]);
  return {
    cpuNanoseconds: field(cpu, "usage_usec") * 1000,
    // Pages that the kernel gives back when asked are not the site's, as `docker stats` counts.
    memoryBytes: Math.max(0, Number(used) - field(stat, "inactive_file")),
  };
}

const field = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);

/** All devices but the loopback: name, eight columns of what came, eight of what went. */
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

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { log } from "../log.ts";

const unifiedPath = (text: string) => /^0::\/(.*)$/m.exec(text)?.[1] ?? "";

/** @returns dockerd's control group below the root, if neither the agent nor all programs are in it */
export function groupOfItsOwn(engine: string, agent: string): string | null {
  const [path, own] = [unifiedPath(engine), unifiedPath(agent)];
  return path === "" || own === path || own.startsWith(`${path}/`) ? null : path;
}

const read = (file: string) => readFile(file, "utf8").catch(() => "");

/** Gives an unsupervised dockerd the group that systemd would have created. @returns false if there is no cgroup2 */
export async function giveOwnGroup(pid: number, name: string): Promise<boolean> {
  const root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((folder) =>
    existsSync(join(folder, "cgroup.controllers")),
  );
  if (root === undefined) return false;
  try {
    await mkdir(join(root, name), { recursive: true });
    await writeFile(join(root, name, "cgroup.procs"), String(pid));
    return true;
  } catch {
    return false;
  }
}

let warned = false;

/** The engine's group, which it has if systemd started it; null otherwise. */
export async function engineGroup(): Promise<string | null> {
  const pid = (await read("/var/run/docker.pid")).trim();
  const group = /^\d+$/.test(pid)
    ? groupOfItsOwn(await read(`/proc/${pid}/cgroup`), await read("/proc/self/cgroup"))
    : null;
  if (group === null && !warned)
    log(
      "warn",
      "The engine has no control group of its own, so ADD and FROM in a Dockerfile can reach this host's networks: run the engine with systemd",
    );
  warned = group === null;
  return group;
}

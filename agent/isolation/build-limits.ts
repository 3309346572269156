import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { log } from "../log.ts";

/** What one build may use; all builds of the engine share one control group, which gets this for every slot. */
export type BuildLimits = { memoryMb: number; cpus: number; pids: number };
type Setting = { file: string; value: string; optional?: true };

const root = "/sys/fs/cgroup";
const periodMicroseconds = 100_000;

/**
 * BuildKit inside the engine takes no limits from a request, but runs every step below one group: `docker/buildkit`.
 * Builds give way to sites where cores are short, and never swap.
 */
export function limitSettings(version: 1 | 2, limits: BuildLimits, slots: number): Setting[] {
  const memory = String(limits.memoryMb * slots * 1024 * 1024);
  const quota = String(Math.round(limits.cpus * slots * periodMicroseconds));
  const pids = String(limits.pids * slots);
  const v1 = (controller: string, name: string) =>
    join(root, controller, "docker/buildkit", `${controller}.${name}`);
  const v2 = (name: string) => join(root, "docker/buildkit", name);
  if (version === 1)
    return [
      // Never below memory.limit_in_bytes, so it is lifted first; not there without swap accounting.
      { file: v1("memory", "memsw.limit_in_bytes"), value: "-1", optional: true },
      { file: v1("memory", "limit_in_bytes"), value: memory },
      { file: v1("memory", "memsw.limit_in_bytes"), value: memory, optional: true },
      { file: v1("cpu", "cfs_period_us"), value: String(periodMicroseconds) },
      { file: v1("cpu", "cfs_quota_us"), value: quota },
      { file: v1("cpu", "shares"), value: "256" },
      { file: v1("pids", "max"), value: pids },
    ];
  return [
    { file: join(root, "cgroup.subtree_control"), value: "+cpu +memory +pids" },
    { file: join(root, "docker", "cgroup.subtree_control"), value: "+cpu +memory +pids" },
    { file: v2("memory.max"), value: memory },
    { file: v2("memory.swap.max"), value: "0", optional: true },
    { file: v2("cpu.max"), value: `${quota} ${periodMicroseconds}` },
    { file: v2("cpu.weight"), value: "25" },
    { file: v2("pids.max"), value: pids },
  ];
}

/** Takes the limits away again: what a test's agent leaves behind. */
export const noLimits = (version: 1 | 2): Setting[] =>
  limitSettings(version, { memoryMb: 1, cpus: 1, pids: 1 }, 1)
    .filter(({ file }) => !/subtree_control|cfs_period/.test(file))
    .map(({ file, ...setting }) => ({ ...setting, file, value: unlimited(version, file) }));

function unlimited(version: 1 | 2, file: string): string {
  if (file.endsWith("cpu.shares")) return "1024";
  if (file.endsWith("cpu.weight")) return "100";
  return version === 2 || file.endsWith("pids.max") ? "max" : "-1";
}

export async function cgroupVersion(): Promise<1 | 2> {
  return stat(join(root, "cgroup.controllers")).then(
    () => 2,
    () => 1,
  );
}

/** @throws when the kernel does not take a setting */
export async function apply(settings: readonly Setting[]): Promise<void> {
  for (const { file, value, optional } of settings) {
    if (!file.startsWith(join(root, "cgroup."))) await mkdir(dirname(file), { recursive: true });
    if (optional && (await readFile(file).catch(() => null)) === null) continue;
    await writeFile(file, value);
  }
}

let warned = false;

/** Before every build, as the engine may have made the group anew. Builds go on without limits where there is no way. */
export async function limitBuilds(cgroupDriver: string, limits: BuildLimits, slots: number): Promise<void> {
  try {
    if (cgroupDriver !== "cgroupfs")
      throw new Error(
        `the engine's cgroup driver is ${cgroupDriver}: set "exec-opts": ["native.cgroupdriver=cgroupfs"] in its daemon.json`,
      );
    await apply(limitSettings(await cgroupVersion(), limits, slots));
    warned = false;
  } catch (error) {
    if (!warned) log("warn", "Builds run without limits of memory, processors and processes", { error });
    warned = true;
  }
}

/** @throws never: what is not there has no limits */
export async function liftBuildLimits(): Promise<void> {
  const version = await cgroupVersion();
  for (const setting of noLimits(version)) await apply([setting]).catch(() => undefined);
}

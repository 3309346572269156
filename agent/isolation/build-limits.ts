import { existsSync, readdirSync, watch } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { log } from "../log.ts";
import { engineGroup } from "./engine-group.ts";

/**
 * What one build may use. With the engine's cgroupfs driver all builds share one control group, which gets this for every
 * slot; with systemd's each step has a group of its own, which gets this.
 */
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

const stepSettings = (folder: string, { memoryMb, cpus, pids }: BuildLimits): Setting[] => [
  { file: join(folder, "memory.max"), value: String(memoryMb * 1024 * 1024) },
  { file: join(folder, "memory.swap.max"), value: "0", optional: true },
  {
    file: join(folder, "cpu.max"),
    value: `${Math.round(cpus * periodMicroseconds)} ${periodMicroseconds}`,
  },
  { file: join(folder, "cpu.weight"), value: "25" },
  { file: join(folder, "pids.max"), value: String(pids) },
];

/** What BuildKit calls a step's group where systemd drives them: no unit of systemd's, made by runc beside dockerd's own. */
const isStep = (name: string | null): name is string => name?.includes(".slice:docker:") ?? false;

/** Limits each step as soon as its group is there, until `end`. */
export function watchSteps(
  folder: string,
  limits: BuildLimits,
  onError: (error: unknown) => void,
): { end(): void } {
  const limit = async (name: string | null): Promise<void> => {
    if (!isStep(name)) return;
    const group = join(folder, name);
    try {
      for (const setting of stepSettings(group, limits)) await write(setting);
    } catch (error) {
      // A short step may be gone.
      if (existsSync(group)) onError(error);
    }
  };
  const watcher = watch(folder, (_, name) => void limit(name)).on("error", onError);
  for (const name of readdirSync(folder)) void limit(name);
  return { end: () => watcher.close() };
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
  for (const setting of settings) {
    if (!setting.file.startsWith(join(root, "cgroup.")))
      await mkdir(dirname(setting.file), { recursive: true });
    await write(setting);
  }
}

async function write({ file, value, optional }: Setting): Promise<void> {
  if (optional && (await readFile(file).catch(() => null)) === null) return;
  await writeFile(file, value, { flag: "r+" });
}

let warned = false;
const warn = (error: unknown): void => {
  if (!warned) log("warn", "Builds run without limits of memory, processors and processes", { error });
  warned = true;
};

/** Before every build, as the engine may have made the group anew. Builds go on without limits where there is no way. */
export async function limitBuilds(
  cgroupDriver: string,
  limits: BuildLimits,
  slots: number,
): Promise<{ end(): void }> {
  try {
    const version = await cgroupVersion();
    if (cgroupDriver === "cgroupfs") {
      await apply(limitSettings(version, limits, slots));
      warned = false;
      return { end: () => undefined };
    }
    const group = version === 2 ? await engineGroup() : null;
    if (group === null)
      throw new Error(
        `the engine's cgroup driver is ${cgroupDriver}: set "exec-opts": ["native.cgroupdriver=cgroupfs"] in its daemon.json`,
      );
    return watchSteps(join(root, dirname(group)), limits, warn);
  } catch (error) {
    warn(error);
    return { end: () => undefined };
  }
}

/** @throws never: what is not there has no limits */
export async function liftBuildLimits(): Promise<void> {
  const version = await cgroupVersion();
  for (const setting of noLimits(version)) await apply([setting]).catch(() => undefined);
}

import { existsSync, readdirSync, watch } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { log } from "../log.ts";
import { engineGroup } from "./engine-group.ts";

/**
 * The limits of one build. With the engine's cgroupfs driver all builds share one control group, which gets this for
 * every slot; with systemd's each step has its own group, which gets this.
 */
export type BuildLimits = {
  memoryMb: number;
  /** null: every core that nobody else needs, because builds have the least weight. */
  cpus: number | null;
  pids: number;
};
/** Of processes: builds need few of theirs, and one that starts them without end should soon come to it. */
const mostShares = 3;
type Setting = { file: string; value: string; optional?: true };

const root = "/sys/fs/cgroup";
const periodMicroseconds = 100_000;

/**
 * BuildKit inside the engine accepts no limits per request, but runs every step below one group: `docker/buildkit`.
 * Builds yield to sites when cores are short, and never swap.
 */
export function limitSettings(version: 1 | 2, limits: BuildLimits, slots: number): Setting[] {
  const all = {
    memoryMb: limits.memoryMb * slots,
    cpus: limits.cpus && limits.cpus * slots,
    pids: limits.pids * Math.min(slots, mostShares),
  };
  return version === 1
    ? settingsOne(all)
    : [
        { file: join(root, "cgroup.subtree_control"), value: "+cpu +memory +pids" },
        { file: join(root, "docker", "cgroup.subtree_control"), value: "+cpu +memory +pids" },
        ...settingsTwo(join(root, "docker/buildkit"), all),
      ];
}

const bytesOf = ({ memoryMb }: BuildLimits): string => String(memoryMb * 1024 * 1024);
const quotaOf = ({ cpus }: BuildLimits): string | null =>
  cpus === null ? null : String(Math.round(cpus * periodMicroseconds));

const fileOne = (controller: string, name: string): string =>
  join(root, controller, "docker/buildkit", `${controller}.${name}`);

const settingsOne = (limits: BuildLimits): Setting[] => [
  // It must not be below memory.limit_in_bytes, so it is lifted first; absent without swap accounting.
  { file: fileOne("memory", "memsw.limit_in_bytes"), value: "-1", optional: true },
  { file: fileOne("memory", "limit_in_bytes"), value: bytesOf(limits) },
  { file: fileOne("memory", "memsw.limit_in_bytes"), value: bytesOf(limits), optional: true },
  { file: fileOne("cpu", "cfs_period_us"), value: String(periodMicroseconds) },
  { file: fileOne("cpu", "cfs_quota_us"), value: quotaOf(limits) ?? "-1" },
  { file: fileOne("cpu", "shares"), value: "256" },
  { file: fileOne("pids", "max"), value: String(limits.pids) },
];

/** For any group of version 2. */
const settingsTwo = (group: string, limits: BuildLimits): Setting[] => [
  { file: join(group, "memory.max"), value: bytesOf(limits) },
  { file: join(group, "memory.swap.max"), value: "0", optional: true },
  { file: join(group, "cpu.max"), value: `${quotaOf(limits) ?? "max"} ${periodMicroseconds}` },
  { file: join(group, "cpu.weight"), value: "25" },
  { file: join(group, "pids.max"), value: String(limits.pids) },
];

/**
 * BuildKit's name for a step's group under systemd's driver: not a systemd unit, but created by runc beside dockerd's
 * own.
 */
const isStep = (name: string | null): name is string => name?.includes(".slice:docker:") ?? false;

/** Limits each step as soon as its group exists, until `end`. */
export function watchSteps(
  folder: string,
  limits: BuildLimits,
  onError: (error: unknown) => void,
): { end(): void } {
  const limit = async (name: string | null): Promise<void> => {
    if (!isStep(name)) return;
    const group = join(folder, name);
    try {
      for (const setting of settingsTwo(group, limits)) await write(setting);
    } catch (error) {
      // A short step may have ended.
      if (existsSync(group)) onError(error);
    }
  };
  const watcher = watch(folder, (_, name) => void limit(name)).on("error", onError);
  for (const name of readdirSync(folder)) void limit(name);
  return { end: () => watcher.close() };
}

/** Removes the limits; used to clean up after a test's agent. */
export const noLimits = (version: 1 | 2): Setting[] =>
  limitSettings(version, { memoryMb: 1, cpus: 1, pids: 1 }, 1)
    .filter(({ file }) => !/subtree_control|cfs_period/.test(file))
    .map(({ file, ...setting }) => ({ ...setting, file, value: unlimited(version, file) }));

function unlimited(version: 1 | 2, file: string): string {
  if (file.endsWith("cpu.shares")) return "1024";
  if (file.endsWith("cpu.weight")) return "100";
  return version === 2 || file.endsWith("pids.max") ? "max" : "-1";
}

async function cgroupVersion(): Promise<1 | 2> {
  return stat(join(root, "cgroup.controllers")).then(
    () => 2,
    () => 1,
  );
}

/** @throws if the kernel does not accept a setting */
async function apply(settings: readonly Setting[]): Promise<void> {
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
  if (!warned) log("warn", "Builds run without limits on memory, CPU and processes", { error });
  warned = true;
};

/**
 * Runs before every build, because the engine may have recreated the group. Builds run without limits if there is no
 * way to set them.
 */
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

/** @throws never: a missing group has no limits */
export async function liftBuildLimits(): Promise<void> {
  const version = await cgroupVersion();
  for (const setting of noLimits(version)) await apply([setting]).catch(() => undefined);
}

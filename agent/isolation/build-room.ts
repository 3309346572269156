import type { Engine } from "../docker/engine.ts";
import { limitBuilds, type BuildLimits } from "./build-limits.ts";
import { demandDisk, watchDisk } from "./disk.ts";

/** What a build may take from the host. */
export type BuildRoom = {
  memoryMb: number;
  /** @throws JobError when the disk is too full for a deployment */
  demandDisk(): Promise<void>;
  /** Limits set, and a signal that aborts when the build fills the disk. */
  enter(): Promise<{ signal: AbortSignal; end(): void }>;
};

export function openBuildRoom(options: {
  engine: Engine;
  workDirectory: string;
  limits: BuildLimits;
  slots: number;
  minFreeDiskMb: number | null;
}): BuildRoom {
  const { engine, workDirectory, limits, slots, minFreeDiskMb } = options;
  return {
    memoryMb: limits.memoryMb,
    async demandDisk() {
      const { rootDirectory } = await engine.facts();
      await demandDisk([rootDirectory, workDirectory], minFreeDiskMb);
    },
    async enter() {
      const { rootDirectory, cgroupDriver } = await engine.facts();
      await limitBuilds(cgroupDriver, limits, slots);
      return watchDisk(rootDirectory, minFreeDiskMb);
    },
  };
}

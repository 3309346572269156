import type { Engine, EngineFacts } from "../docker/engine.ts";
import { openBuildCache } from "./build-cache.ts";
import { limitBuilds, type BuildLimits } from "./build-limits.ts";
import { demandDisk, fullestOf, watchDisk, type Disk } from "./disk.ts";

const received = {
  image: { ended: "The pull", advice: "use a smaller image" },
  volumes: {
    ended: "Making the app's container",
    advice: "put less into the folders of its image that are volumes, or declare fewer with VOLUME",
  },
  backup: { ended: "Restoring the backup", advice: "try again later, or ask the operator to make room" },
};
type Received = keyof typeof received;

/** A build's share of the host. */
export type BuildRoom = {
  memoryMb: number;
  /** @throws JobError if the disk is too full for a deployment */
  demandDisk(): Promise<void>;
  /** Gives up the build cache where the disk is full, unless that was in vain lately. Never throws. */
  makeRoom(): Promise<void>;
  /** The engine's disk with the least room; null if the agent cannot see it. */
  disk(): Promise<Disk | null>;
  /** Sets the limits and returns a signal that aborts if the build fills the disk. */
  enter(): Promise<{ signal: AbortSignal; end(): void }>;
  /** Returns a signal that aborts if an image, a backup or what the engine copies into volumes, which may be of any size, fills the disk. */
  receive(what: Received): Promise<{ signal: AbortSignal; end(): void }>;
};

export function openBuildRoom(options: {
  engine: Engine;
  workDirectory: string;
  limits: BuildLimits;
  slots: number;
  minFreeDiskMb: number | null;
  maxCacheMb: number | null;
}): BuildRoom {
  const { engine, workDirectory, limits, slots, minFreeDiskMb } = options;
  // An engine's facts are constant while it runs, and fetching them is slow.
  let known: EngineFacts | undefined;
  const facts = async () => (known ??= await engine.facts());
  const directories = async () => {
    const { rootDirectory, imageDirectory } = await facts();
    return [...new Set([rootDirectory, imageDirectory])];
  };
  const disk = async () => fullestOf(await directories(), minFreeDiskMb);
  const cache = openBuildCache({ engine, disk, maxMb: options.maxCacheMb, minFreeDiskMb });
  return {
    memoryMb: limits.memoryMb,
    async demandDisk() {
      await cache.makeRoom();
      await demandDisk([...(await directories()), workDirectory], minFreeDiskMb);
    },
    makeRoom: () => cache.makeRoom(),
    disk,
    async receive(what) {
      return watchDisk([...(await directories()), workDirectory], minFreeDiskMb, received[what]);
    },
    async enter() {
      const { cgroupDriver } = await facts();
      const limited = await limitBuilds(cgroupDriver, limits, slots);
      const watched = watchDisk(await directories(), minFreeDiskMb, {
        ended: "The build",
        advice: "make it write less",
      });
      cache.buildBegins();
      return {
        signal: watched.signal,
        end() {
          watched.end();
          limited.end();
          void cache.buildEnds();
        },
      };
    },
  };
}

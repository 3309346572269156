import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { BuildRoom } from "../isolation/build-room.ts";
import { floorBytes } from "../isolation/disk.ts";
import { mebibyte } from "../docker/mebibyte.ts";

export type Condition = Required<Omit<Extract<FromAgent, { type: "condition" }>, "type">>;

/** So that a disk in use is not reported with each look; in MB. */
const stepMb = 256;

/** The disk as it is reported. Where it lacks room for a deployment, the build cache is given up meanwhile. */
export async function diskCondition(
  room: Pick<BuildRoom, "disk" | "makeRoom">,
  minFreeMb: number | null,
): Promise<Condition["disk"]> {
  const disk = await room.disk();
  if (!disk) return null;
  const floor = floorBytes(disk, minFreeMb);
  const isFull = disk.freeBytes < floor;
  if (isFull) void room.makeRoom();
  const neededMb = Math.ceil(floor / mebibyte);
  const freeMb = Math.floor(disk.freeBytes / mebibyte / stepMb) * stepMb;
  // Never rounded across what is needed.
  return { freeMb: isFull ? Math.min(freeMb, neededMb - 1) : Math.max(freeMb, neededMb), neededMb };
}

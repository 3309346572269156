import type { FromAgent } from "../../protocol/agent/messages.ts";
import type { BuildRoom } from "../isolation/build-room.ts";
import { floorBytes } from "../isolation/disk.ts";
import { mebibyte } from "../docker/mebibyte.ts";

export type Condition = Required<Omit<Extract<FromAgent, { type: "condition" }>, "type">>;

/** A message may be that late; certificates and signatures bear as much. */
const clockToleranceMs = 60_000;
const clockUnits = [
  ["day", 48 * 3_600_000, 24 * 3_600_000],
  ["hour", 2 * 3_600_000, 3_600_000],
  ["minute", 0, 60_000],
] as const;

/** Why and how to set this host's clock, for the operator; null: it is right, or not known to be wrong. */
export function clockProblem(hostMs: number, serviceMs: number | null): string | null {
  const aheadMs = hostMs - (serviceMs ?? hostMs);
  const offMs = Math.abs(aheadMs);
  if (offMs < clockToleranceMs) return null;
  const [unit, , unitMs] = clockUnits.find(([, leastMs]) => offMs >= leastMs) ?? clockUnits[2];
  const count = Math.round(offMs / unitMs);
  return `Its clock is ${count} ${unit}${count === 1 ? "" : "s"} ${aheadMs > 0 ? "ahead of" : "behind"} the service's: logs, metrics and events there have wrong times, and certificates may be refused or not renewed. Let the host set it from the network (timedatectl set-ntp true). If the host's clock is right, correct that of the service's machine.`;
}

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

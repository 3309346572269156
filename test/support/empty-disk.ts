import type { BuildRoom } from "../../agent/isolation/build-room.ts";

/** Room for everything. @param full aborts once the disk is full after all */
export const emptyDisk = (
  full = new AbortController().signal,
): Pick<BuildRoom, "demandDisk" | "receive"> => ({
  demandDisk: async () => undefined,
  receive: async () => ({ signal: full, end: () => undefined }),
});

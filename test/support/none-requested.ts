import type { RequestRecords } from "../../agent/running/request-records.ts";

/** For agents whose sites nobody visits. */
export const noneRequested: RequestRecords = {
  take: () => undefined,
  position: () => null,
  before: () => [],
  after: () => [],
  newest: () => 0,
  stats: () => {
    throw new Error("no statistics here");
  },
  rollUp: () => Promise.resolve(),
  keepOnly: () => undefined,
  onTaken: () => undefined,
  close: () => undefined,
};

import type { Means } from "../../agent/question-server.ts";

/** Of a host that is not asked what it keeps. */
export const noneKept: Means["kept"] = {
  ids: () => Promise.resolve([]),
  of: () => Promise.resolve([]),
  remove: () => Promise.resolve(false),
};

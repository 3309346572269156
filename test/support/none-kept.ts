import type { Means } from "../../agent/question-server.ts";

/** Of a host that is not asked what it keeps. */
export const noneKept: Means["kept"] = {
  held: () => Promise.resolve({ ids: [], databases: [] }),
  of: () => Promise.resolve([]),
  remove: () => Promise.resolve(false),
  volumesOf: () => Promise.resolve([]),
  removeVolumes: () => Promise.resolve(false),
};

/** Of a host that is not asked about repositories. */
export const noSources: Means["inspectSource"] = () =>
  Promise.reject(new Error("No repository is asked about"));

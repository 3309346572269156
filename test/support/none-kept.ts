import type { Means } from "../../agent/question-server.ts";

/** For a host that is not asked about kept data. */
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

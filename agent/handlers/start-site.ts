import type { Handler } from "./handler.ts";
import { imageOf, release } from "../sites/rollout.ts";

/** Starts the stopped container, or creates it again if it is gone, and then routes the names to it. */
export const startSite: Handler<"site.start"> = async (host, { run, deploymentId }, job) => {
  await release(host, run, deploymentId, await imageOf(host, run.siteId, deploymentId), "", job);
  return {};
};

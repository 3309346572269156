import type { Handler } from "./handler.ts";
import { imageOf, release } from "../sites/rollout.ts";

/** Starts the stopped container, or makes it anew where it is gone; then the names lead to it again. */
export const startSite: Handler<"site.start"> = async (host, { run, deploymentId }, job) => {
  await release(host, run, deploymentId, await imageOf(host, run.siteId, deploymentId), "", job);
  return {};
};

import type { Handler } from "./handler.ts";
import { imageOf, release } from "../sites/rollout.ts";

/**
 * Same image, new container, zero-downtime swap. The container is named after the job, so that a second attempt finds
 * it.
 */
export const restartSite: Handler<"site.restart"> = async (host, { run, deploymentId }, job) => {
  await release(
    host,
    run,
    deploymentId,
    await imageOf(host, run.siteId, deploymentId),
    job.jobId.slice(-8),
    job,
  );
  return {};
};

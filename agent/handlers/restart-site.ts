import type { Handler } from "./handler.ts";
import { isShutdown } from "../failure.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";
import { limitServing } from "../sites/limit-serving.ts";
import { imageOf, release } from "../sites/rollout.ts";

/**
 * Same image, new container, zero-downtime swap. The container is named after the job, so that a second attempt finds
 * it. What goes on serving where that fails has the new limits as well.
 */
export const restartSite: Handler<"site.restart"> = async (host, { run, deploymentId }, job) => {
  const { siteId, limits } = run;
  try {
    const image = await imageOf(host, siteId, deploymentId);
    await release(host, run, deploymentId, image, job.jobId.slice(-8), job);
  } catch (error) {
    if (isShutdown(job.signal)) throw error;
    const isLess = await limitServing(host, run).catch((refusal: unknown) => {
      log("error", "What serves may have more than its pack", { siteId, error: refusal });
      return false;
    });
    if (!isLess || !(error instanceof JobError)) throw error;
    throw new JobError(
      `${error.message} The version that serves goes on with the ${limits.memoryMb} MB of the site's pack: if the app needs more to start, choose a larger pack.`,
      { cause: error.cause },
    );
  }
  return {};
};

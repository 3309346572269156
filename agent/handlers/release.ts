import type { RunSpec } from "../../protocol/agent/jobs.ts";
import type { Host, JobRun, Target } from "../host.ts";
import { networkLabels, networkName, siteContainer, siteLabels } from "../docker/specs.ts";
import { bridgeName } from "../isolation/rules.ts";
import { JobError } from "../host.ts";
import { exitReason, waitUntilHealthy } from "./probe.ts";

export type Released = { startMs: number; swapMs: number };

/** New container first, traffic second, old ones last: whatever fails before the swap leaves the old one serving. */
export async function release(
  host: Host,
  run: RunSpec,
  deploymentId: string,
  image: string,
  name: string,
  job: JobRun,
): Promise<Released> {
  const started = performance.now();
  job.phase("start");
  const network = networkName(run.accountId);
  await host.isolation.demand();
  await host.engine.ensureNetwork(network, bridgeName(host.agentId, network), networkLabels(run.accountId));
  job.signal.throwIfAborted();
  const id = await host.engine.createContainer(siteContainer(host.agentId, run, deploymentId, image, name));
  try {
    await host.engine.startContainer(id);
    const state = await host.engine.inspectContainer(id);
    const address = state?.addresses[network];
    if (!state || !address)
      throw new JobError(await exitReason(host.engine, id, state?.exitCode ?? 1, started));
    const target: Target = { containerId: id, address, port: run.port };
    job.log(
      `Waiting for an answer on port ${run.port}${run.healthCheckPath ? ` at ${run.healthCheckPath}` : ""}.`,
    );
    await waitUntilHealthy(
      host.engine,
      state,
      { ...target, path: run.healthCheckPath },
      run.startTimeoutSeconds,
      job.signal,
    );
    const healthy = performance.now();
    job.signal.throwIfAborted();
    job.phase("swap");
    await host.ingress.route(run.siteId, run.hostnames, target);
    const swapped = performance.now();
    host.retire(run.siteId, id);
    return { startMs: Math.round(healthy - started), swapMs: Math.round(swapped - healthy) };
  } catch (error) {
    const routed = host.ingress.current(run.siteId);
    if (routed === null || routed === "parked" || routed.containerId !== id)
      await host.engine.removeContainer(id);
    throw error;
  }
}

export const containersOf = (host: Host, siteId: string) =>
  host.engine.listContainers({ ...siteLabels(siteId), "berth.agent": host.agentId });

/** Seconds between SIGTERM and SIGKILL. */
export const stopGraceSeconds = 10;

/** The image of a deployment this host has built. @throws JobError when it is gone */
export async function imageOf(host: Host, siteId: string, deploymentId: string): Promise<string> {
  const reference = `${host.imageRepository(siteId)}:${deploymentId}`;
  if ((await host.engine.imageId(reference)) === null)
    throw new JobError("The image of this version is no longer on the host: deploy the site again.");
  return reference;
}

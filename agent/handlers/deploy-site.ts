import type { JobArgs, MadeSource } from "../../protocol/agent/jobs.ts";
import { isShutdown } from "../failure.ts";
import { removeSiteImages } from "../docker/site-images.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import type { Handler } from "./handler.ts";
import { leaveAccountNetwork } from "../isolation/account-network.ts";
import { log } from "../log.ts";
import { timesTaken } from "../phase-times.ts";
import { overQuota } from "../running/disk-use.ts";
import { buildImage } from "../sites/build-image.ts";
import { keptImage, type Obtained } from "../sites/kept-image.ts";
import { hideDigest } from "../sites/private-image.ts";
import { pullImage } from "../sites/pull-image.ts";
import { removeReleaseCommand, runReleaseCommand } from "../sites/release-command.ts";
import { release, type Released } from "../sites/rollout.ts";

type Args = JobArgs<"site.deploy">;

/**
 * Gets an image, then rolls it out: any failure keeps the old version serving and leaves nothing of the new one
 * behind.
 */
export const deploySite: Handler<"site.deploy"> = async (host, args, job) => {
  const repository = host.imageRepository(args.run.siteId);
  const reference = `${repository}:${args.deploymentId}`;
  await demandVolumeRoom(host, args);
  try {
    const { cloneMs, buildMs, ...made } = await obtainImage(host, args, reference, job);
    await host.engine.tagImage(made.imageId, repository, args.deploymentId);
    const version = { ...args, run: { ...args.run, commit: made.commit } };
    const releaseMs = await runReleaseCommand(host, version, made.imageId, job);
    // By its id: an earlier attempt may have put another build into service.
    const { startMs, swapMs } = await putIntoService(host, version, made.imageId, job);
    // The new version serves; a failing cleanup does not make the deployment fail.
    const kept = [args.deploymentId, ...args.kept.map((one) => one.deploymentId)];
    job.afterwards(() => removeSiteImages(host.engine, { siteId: args.run.siteId, repository }, kept));
    const durations = { clone: cloneMs, build: buildMs, start: startMs, swap: swapMs };
    const times = timesTaken({ ...durations, release: releaseMs });
    if (times !== null) job.log(times);
    return { ...made, durations, ...(args.parked && { parked: true }) };
  } catch (error) {
    // Report the first error, not a failed cleanup.
    const onError = (left: unknown) =>
      log("error", "A failed deployment was not cleaned up", { reference, error: left });
    // On shutdown, the next agent resumes it.
    if (!isShutdown(job.signal)) await removeReleaseCommand(host, args.deploymentId).catch(onError);
    await host.engine.removeImage(reference).catch(onError);
    // The network stays if the account's other sites use it.
    await leaveAccountNetwork(host, args.run.accountId).catch(onError);
    throw error;
  }
};

/** A stopped site is not started for a move, not even briefly. */
async function putIntoService(
  host: Host,
  { run, deploymentId, parked }: Args,
  imageId: string,
  job: JobRun,
): Promise<Released | { startMs: null; swapMs: null }> {
  if (!parked) return release(host, run, deploymentId, imageId, "", job);
  job.signal.throwIfAborted();
  if (run.ingress) await host.ingress.rule(run.siteId, run.ingress, run.readAtMs);
  await host.ingress.park(run.siteId, host.ingress.newest(run.siteId, run));
  return { startMs: null, swapMs: null };
}

/** @throws JobError if the volumes hold more than the pack allows. Rollbacks are exempt, because one may be the fix. */
async function demandVolumeRoom(host: Host, { run, source }: Args): Promise<void> {
  const { diskGb } = run.limits;
  if (diskGb === undefined || run.volumes.length === 0 || source.type === "kept") return;
  const volumesMb = await host.volumesMb(run.siteId);
  if (volumesMb !== null && volumesMb > diskGb * 1024) throw new JobError(overQuota(volumesMb, diskGb));
}

async function obtainImage(host: Host, args: Args, reference: string, job: JobRun): Promise<Obtained> {
  const { source } = args;
  if (source.type === "kept") {
    const kept = await keptImage(host, args, source.deploymentId, job);
    if (kept) return kept;
    const { otherwise } = source;
    if (!otherwise)
      throw new JobError("The image of that deployment is no longer on the host: deploy its commit again.");
    job.log(`This host does not have the image of that deployment: it is ${madeAnew(otherwise)}.`);
    return obtainImage(host, { ...args, source: otherwise }, reference, job);
  }
  if (source.type === "image") await host.buildRoom.demandDisk();
  const made = await (source.type === "image"
    ? pullImage(host, args, source, job)
    : buildImage(host, args, reference, job));
  await demandModest(host, made.imageId);
  // Only containerd's image store has a registry's digest as the id.
  const isGivenByDigest =
    source.type === "image" && source.login !== null && made.imageId === made.imageDigest;
  return isGivenByDigest ? { ...made, imageId: await hideDigest(host, args, made.imageId) } : made;
}

const mostDeclared = { ports: 1000, volumes: 100, kilobytes: 256 };

/**
 * What an image declares, the engine repeats in each list of all containers, for which the sites of all tenants wait,
 * and no container can do without. @throws JobError
 */
async function demandModest({ engine }: Host, imageId: string): Promise<void> {
  const { ports, volumes, bytes } = await engine.imageDeclares(imageId);
  if (ports > mostDeclared.ports)
    throw new JobError(
      `The image exposes ${ports} ports, and at most ${mostDeclared.ports} are possible: let its Dockerfile EXPOSE only the site's own, or use another base image.`,
    );
  if (volumes > mostDeclared.volumes)
    throw new JobError(
      `The image declares ${volumes} volumes, and at most ${mostDeclared.volumes} are possible: remove VOLUME from its Dockerfile, or use another base image.`,
    );
  if (bytes > mostDeclared.kilobytes * 1024)
    throw new JobError(
      `The labels, variables and other settings of the image are larger than ${mostDeclared.kilobytes} KB: make them smaller, or use another base image.`,
    );
}

function madeAnew(source: MadeSource): string {
  switch (source.type) {
    case "git":
      return `built again from commit ${source.commit?.slice(0, 12)}`;
    case "dockerfile":
      return "built again from its Dockerfile";
    case "image":
      return "pulled again by its digest";
  }
}

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { checkSource } from "../build/check-source.ts";
import { describeSource, fetchSource } from "../build/fetch-source.ts";
import { packText, prepareBuild, type Prepared } from "../build/prepare.ts";
import { networkName, siteLabels } from "../docker/specs.ts";
import { JobError, type Handler, type Host, type JobRun } from "../host.ts";
import { release } from "./release.ts";

type Args = JobArgs<"site.deploy">;
type Built = {
  image: string;
  commit: string | null;
  commitMessage: string | null;
  cloneMs: number | null;
  buildMs: number | null;
};

/** Fetch, build, then release: whatever fails leaves the old version serving and nothing of the new one behind. */
export const deploySite: Handler<"site.deploy"> = async (host, args, job) => {
  const repository = host.imageRepository(args.run.siteId);
  const reference = `${repository}:${args.deploymentId}`;
  try {
    await host.buildRoom.demandDisk();
    const built =
      args.source.type === "image" ? await pull(host, args, job) : await build(host, args, reference, job);
    if (args.source.type === "image") await host.engine.tagImage(built.image, repository, args.deploymentId);
    const { startMs, swapMs } = await release(host, args.run, args.deploymentId, reference, "", job);
    await keepNewestImages(host, args.run.siteId, args.keepImages);
    const { commit, commitMessage, cloneMs, buildMs } = built;
    return {
      commit,
      commitMessage,
      imageDigest: built.image,
      durations: { clone: cloneMs, build: buildMs, start: startMs, swap: swapMs },
    };
  } catch (error) {
    await host.engine.removeImage(reference);
    // In use by the account's other sites: it stays.
    await host.engine.removeNetwork(networkName(args.run.accountId));
    throw error;
  }
};

async function pull(host: Host, args: Args, job: JobRun): Promise<Built> {
  if (args.source.type !== "image") throw new Error("not an image source");
  const { reference } = args.source;
  const started = performance.now();
  job.phase("build");
  job.log(`Pulling ${reference}.`);
  const local = await host.engine.imageId(reference);
  try {
    await host.engine.pullImage(reference, job.signal);
  } catch (error) {
    job.signal.throwIfAborted();
    if (local === null)
      throw new JobError(
        `The image ${reference} could not be pulled: check its name and that it is public.`,
        { cause: error },
      );
    job.log(`The registry did not answer; the image this host has is used.`);
  }
  const image = await host.engine.imageId(reference);
  if (image === null) throw new JobError(`The image ${reference} does not exist: check its name.`);
  return {
    image,
    commit: null,
    commitMessage: null,
    cloneMs: null,
    buildMs: Math.round(performance.now() - started),
  };
}

async function build(host: Host, args: Args, reference: string, job: JobRun): Promise<Built> {
  const work = join(host.workDirectory, job.jobId);
  const folder = join(work, "source");
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true, mode: 0o700 });
  try {
    const started = performance.now();
    job.phase("clone");
    const { source } = args;
    if (source.type === "git") {
      job.log(`Fetching ${source.address}${source.branch === null ? "" : `, branch ${source.branch}`}.`);
      await fetchSource(source, folder, host.settings, job.signal);
      await checkSource(folder);
    }
    const cloned = performance.now();
    const input = {
      ...args,
      siteId: args.run.siteId,
      startCommand: args.run.startCommand,
      env: args.run.env,
    };
    const [fetched, prepared] = await Promise.all([
      source.type === "git" ? describeSource(source, folder, job.signal) : null,
      source.type === "dockerfile"
        ? packText(source.text, input, host.settings.buildCaFile)
        : prepareBuild(folder, input, host.settings.buildCaFile, (image) => canHave(host, image, job)),
    ]);
    job.phase("build", fetched ?? undefined);
    if (fetched) job.log(`At ${fetched.commit.slice(0, 12)} ${fetched.commitMessage}`);
    if (prepared.generated !== null)
      job.log(`No Dockerfile found; building with this one:\n${prepared.generated}`);
    await buildWithin(host, args, prepared, reference, job);
    const image = await host.engine.imageId(reference);
    if (image === null) throw new JobError("The build made no image: deploy again.");
    return {
      image,
      commit: fetched?.commit ?? null,
      commitMessage: fetched?.commitMessage ?? null,
      cloneMs: fetched ? Math.round(cloned - started) : null,
      buildMs: Math.round(performance.now() - cloned),
    };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Whether the engine has a base image, or gets it from a registry. */
async function canHave(host: Host, image: string, job: JobRun): Promise<boolean> {
  if ((await host.engine.imageId(image)) !== null) return true;
  job.log(`Pulling ${image}.`);
  try {
    await host.engine.pullImage(image, job.signal);
    return true;
  } catch {
    job.signal.throwIfAborted();
    return false;
  }
}

async function buildWithin(
  host: Host,
  args: Args,
  prepared: Prepared,
  reference: string,
  job: JobRun,
): Promise<void> {
  await host.isolation.demand();
  const room = await host.buildRoom.enter();
  const timeout = AbortSignal.timeout(args.buildTimeoutSeconds * 1000);
  try {
    await host.engine.build({
      context: prepared.context,
      dockerfile: prepared.dockerfile,
      tag: reference,
      // The same for every deployment, so that an unchanged source is the same image.
      labels: siteLabels(args.run.siteId),
      buildArgs: prepared.buildArgs,
      cacheNamespace: host.imageRepository(args.run.siteId),
      secrets: prepared.secrets,
      signal: AbortSignal.any([job.signal, timeout, room.signal]),
      onLine: job.log,
    });
  } catch (error) {
    job.signal.throwIfAborted();
    room.signal.throwIfAborted();
    if (timeout.aborted)
      throw new JobError(
        `The build took more than ${args.buildTimeoutSeconds / 60} minutes: make it shorter.`,
      );
    if (error instanceof Error && error.name === "BuildFailed")
      throw new JobError(buildFailure(error.message, host.buildRoom.memoryMb), { cause: error });
    throw error;
  } finally {
    room.end();
  }
}

/** SIGKILL is how the kernel ends what uses too much memory. */
const buildFailure = (message: string, memoryMb: number): string =>
  /exit code: 137\b/.test(message)
    ? `The build was killed, most likely because it used more than the ${memoryMb} MB of memory a build has: let it use less.`
    : `The build failed: ${message}. See the deployment's log.`;

/** The newest images of a site stay for rollback; one that a container uses always stays. */
async function keepNewestImages(host: Host, siteId: string, count: number): Promise<void> {
  const images = await host.engine.listImages(siteLabels(siteId));
  const repository = `${host.imageRepository(siteId)}:`;
  const tags = images.flatMap((image) => image.tags.filter((tag) => tag.startsWith(repository)));
  // By deployment id, which sorts by time; a cached build keeps the image's old creation time.
  const newestFirst = tags.toSorted((a, b) => (a < b ? 1 : -1));
  for (const tag of newestFirst.slice(count)) await host.engine.removeImage(tag);
}

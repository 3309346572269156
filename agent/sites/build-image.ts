import { mkdir } from "node:fs/promises";
import { join, posix } from "node:path";
import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { buildKeyOf, releaseCommandOf } from "../image-build/build-key.ts";
import { describeSource } from "../image-build/fetch-source.ts";
import { buildFailure } from "../image-build/build-failure.ts";
import { appFolder } from "../image-build/dockerfile/instructions.ts";
import { obtainSource, type Wanted } from "../image-build/obtain-source.ts";
import { prepareApart } from "../image-build/prepare-apart.ts";
import { prepareText, type Input, type Prepared } from "../image-build/prepare.ts";
import type { BuildFailed } from "../docker/buildkit.ts";
import { label } from "../docker/labels.ts";
import { releaseLabel, siteLabels } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { removeTree } from "../remove-tree.ts";
import { basesFor } from "./build-bases.ts";
import { unchangedImage, type Obtained } from "./kept-image.ts";

type Args = JobArgs<"site.deploy">;

/**
 * Fetches the source and builds it as `reference`, unless that would only make a kept image again. Git is asked whether it would while it
 * fetches already: most deployments have something to build.
 */
export async function buildImage(host: Host, args: Args, reference: string, job: JobRun): Promise<Obtained> {
  const work = join(host.workDirectory, `${job.jobId}-${job.attempt}`);
  const folder = join(work, "source");
  await removeTree(work);
  await mkdir(work, { recursive: true, mode: 0o700 });
  const over = new AbortController();
  const signal = AbortSignal.any([job.signal, over.signal]);
  let fetching = Promise.resolve();
  try {
    const started = performance.now();
    let cloned = started;
    job.phase("clone");
    const { source } = args;
    const input: Input = {
      rootDir: args.rootDir,
      dockerfilePath: args.dockerfilePath,
      buildCommand: args.buildCommand,
      options: args.options,
      siteId: args.run.siteId,
      startCommand: args.run.startCommand,
      releaseCommand: releaseCommandOf(args),
      env: args.run.env,
      memoryMb: host.buildRoom.memoryMb,
    };
    const obtain = async (from: Wanted): Promise<void> => {
      job.log(`Fetching ${from.address}${from.branch === null ? "" : `, branch ${from.branch}`}.`);
      await obtainSource(from, folder, host.settings, { log: job.log, signal });
      cloned = performance.now();
    };
    const bases = basesFor(host, args, job);
    const asking = unchangedImage(host, args, job);
    if (source.type === "git") fetching = obtain(source);
    // Its process takes as long to start as Git to fetch, and reads once there is something to build and room for it.
    const { promise: readable, resolve: read } = Promise.withResolvers<void>();
    const preparing =
      source.type === "dockerfile"
        ? prepareText(source.text, input, host.settings.buildCaFile)
        : prepareApart(
            host.readers,
            {
              accountId: args.run.accountId,
              folder,
              input,
              buildCaFile: host.settings.buildCaFile,
              fileTimes: host.fileTimes?.(args.run.siteId) ?? null,
            },
            (image) => bases.canHave(image),
            signal,
            (base) => bases.shared(base),
            readable,
          );
    // They are waited for below, unless what is asked for first fails.
    for (const later of [fetching, preparing]) later.catch(() => undefined);
    const unchanged = await asking;
    if (unchanged) return unchanged;
    await host.buildRoom.demandDisk();
    read(fetching);
    const [fetched, prepared] = await Promise.all([
      source.type === "git" ? fetching.then(() => describeSource(source, folder, signal)) : null,
      preparing,
    ]);
    job.phase("build", fetched ?? undefined);
    if (fetched) job.log(`At ${fetched.commit.slice(0, 12)} ${fetched.commitMessage}`);
    for (const note of prepared.notes) job.log(note);
    if (prepared.generated !== null) {
      if (!prepared.isStatic) refuseVolumeOnApp(args.run);
      job.log(
        `${args.options.builder === "detect" ? "Building with this Dockerfile" : "No Dockerfile found; building with this one"}:\n${prepared.generated}`,
      );
    }
    await bases.ready(prepared);
    await buildWithin(
      host,
      args,
      { ...prepared, buildArgs: { ...commitArgument(prepared, fetched), ...prepared.buildArgs } },
      reference,
      job,
    );
    prepared.context?.done();
    const imageId = await host.engine.imageId(reference);
    if (imageId === null) throw new JobError("The build produced no image: deploy again.");
    return {
      imageId,
      imageDigest: imageId,
      buildKey: buildKeyOf(
        args,
        fetched?.commit ?? null,
        host.imageRepository(args.run.siteId),
        prepared.generated !== null,
      ),
      commit: fetched?.commit ?? null,
      commitMessage: fetched?.commitMessage ?? null,
      cloneMs: fetched ? Math.round(cloned - started) : null,
      buildMs: Math.round(performance.now() - cloned),
    };
  } finally {
    over.abort();
    await fetching.catch(() => undefined);
    // A large repository takes as long to remove as a container to start.
    const tidied = removeTree(work);
    tidied.catch(() => undefined);
    job.afterwards(() => tidied);
  }
}

/**
 * The engine copies what the image has there into a new volume, which then hides the files of every later version.
 * @throws JobError
 */
function refuseVolumeOnApp({ volumes }: Args["run"]): void {
  const covering = volumes.find(({ mountPath }) => posix.resolve(mountPath) === appFolder({ within: null }));
  if (covering !== undefined)
    throw new JobError(
      `The volume ${covering.name} is mounted at /app, the app's own folder: it would serve the files of its first deployment forever. Mount it at an empty folder, such as /app/data or /data.`,
    );
}

/** Also the repository's own Dockerfile may declare it. */
const commitArgument = (
  { dockerfile: { text } }: Prepared,
  fetched: { commit: string } | null,
): Record<string, string> =>
  fetched && /^\s*ARG\s(?:.*\s)?BERTH_COMMIT\b/im.test(text) ? { BERTH_COMMIT: fetched.commit } : {};

async function buildWithin(
  host: Host,
  args: Args,
  prepared: Prepared,
  reference: string,
  job: JobRun,
): Promise<void> {
  await host.isolation.demand();
  // What an attempt before this one built would lose its name, and stay for good.
  await host.engine.removeImage(reference);
  const room = await host.buildRoom.enter();
  const timeout = AbortSignal.timeout(args.buildTimeoutSeconds * 1000);
  const { context } = prepared;
  const ends = [job.signal, timeout, room.signal, ...(context ? [context.failed] : [])];
  try {
    await host.engine.build({
      context: context?.send ?? null,
      dockerfile: prepared.dockerfile,
      tag: reference,
      // The same for every deployment, so that an unchanged source is the same image.
      labels: {
        ...siteLabels(args.run.siteId),
        [releaseLabel]: prepared.release ?? "",
        [label.static]: prepared.isStatic ? "true" : "",
      },
      buildArgs: prepared.buildArgs,
      cacheNamespace: host.imageRepository(args.run.siteId),
      isFresh: args.rebuild,
      secrets: prepared.secrets,
      signal: AbortSignal.any(ends),
      onLine: job.log,
    });
  } catch (error) {
    job.signal.throwIfAborted();
    room.signal.throwIfAborted();
    context?.failed.throwIfAborted();
    if (timeout.aborted)
      throw new JobError(
        `The build took more than ${args.buildTimeoutSeconds / 60} minutes: make it shorter.`,
      );
    if (isBuildFailed(error))
      throw new JobError(buildFailure(error, host.buildRoom.memoryMb, prepared.generated, args.rootDir), {
        cause: error,
      });
    throw error;
  } finally {
    room.end();
  }
}

/** By its name: its class is loaded with all of gRPC, when something is built. */
const isBuildFailed = (error: unknown): error is BuildFailed =>
  error instanceof Error && error.name === "BuildFailed";

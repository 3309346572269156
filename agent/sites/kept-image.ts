import type { JobArgs, JobResult, KeptDeployment } from "../../protocol/agent/jobs.ts";
import { buildKeyOf } from "../image-build/build-key.ts";
import { newestCommit } from "../image-build/fetch-source.ts";
import type { Host } from "../host.ts";
import type { JobRun } from "../job.ts";

type Args = JobArgs<"site.deploy">;
/** An image, what it was made of and how long that took. */
export type Obtained = Omit<JobResult<"site.deploy">, "durations"> & {
  cloneMs: number | null;
  buildMs: number | null;
};

const obtained = (
  { commit, commitMessage, imageDigest, imageId, buildKey }: KeptDeployment,
  cloneMs: number | null,
): Obtained => ({ commit, commitMessage, imageDigest, imageId, buildKey, cloneMs, buildMs: null });

const isHere = async (host: Host, args: Args, { deploymentId, imageId }: KeptDeployment) =>
  (await host.engine.imageId(`${host.imageRepository(args.run.siteId)}:${deploymentId}`)) === imageId;

/** Rollback: exactly the image of the deployment named; null where the host has it not. */
export async function keptImage(
  host: Host,
  args: Args,
  deploymentId: string,
  job: JobRun,
): Promise<Obtained | null> {
  const kept = args.kept.find((one) => one.deploymentId === deploymentId);
  if (!kept || !(await isHere(host, args, kept))) return null;
  job.log(`Bringing back the image of deployment ${kept.number}, without a build.`);
  return obtained(kept, null);
}

/** The image of a kept deployment that a build would only make again; null where there is none. */
export async function unchangedImage(host: Host, args: Args, job: JobRun): Promise<Obtained | null> {
  if (args.rebuild || args.kept.every(({ buildKey }) => buildKey === null)) return null;
  const started = performance.now();
  const { source } = args;
  const commit = source.type === "git" ? (source.commit ?? (await newestCommit(host, source, job))) : null;
  if (source.type === "git" && commit === null) return null;
  // Which of the two it would be, only the source tells; it was the same for the same commit.
  const keys: (string | null)[] = [true, false].map((isGenerated) =>
    buildKeyOf(args, commit, host.imageRepository(args.run.siteId), isGenerated),
  );
  const same = args.kept.find(({ buildKey }) => keys.includes(buildKey));
  if (!same || !(await isHere(host, args, same))) return null;
  job.log(`Nothing to build has changed: using the image of deployment ${same.number}.`);
  return obtained(same, source.type === "git" ? Math.round(performance.now() - started) : null);
}

import type { JobArgs, Source } from "../../protocol/agent/jobs.ts";
import { tagOf } from "../docker/client.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import type { Obtained } from "./kept-image.ts";
import { undoneAfter } from "./left-over.ts";

type ImageSource = Extract<Source, { type: "image" }>;

/** What the reference names in its registry now, or is said to have named, by its digest, tagged for the deployment. */
export async function pullImage(
  host: Host,
  args: JobArgs<"site.deploy">,
  source: ImageSource,
  job: JobRun,
): Promise<Obtained> {
  const started = performance.now();
  job.phase("build");
  job.log(`Pulling ${source.reference}.`);
  const imageDigest = await digestOf(host, source, job);
  const tag = (id: string) =>
    host.engine.tagImage(id, host.imageRepository(args.run.siteId), args.deploymentId);
  const made = { commit: null, commitMessage: null, buildKey: null, cloneMs: null };
  const tookMs = () => Math.round(performance.now() - started);
  if (imageDigest === null) {
    const local = await host.engine.localImage(source.reference);
    if (local === null) throw new JobError(refusalOf(source, "not found"));
    job.log("The registry did not answer; the image this host has is used.");
    await tag(local);
    return { ...made, imageDigest: local, imageId: local, buildMs: tookMs() };
  }
  job.log(`It is ${imageDigest}.`);
  const imageId = await pullPinned(host, source, imageDigest, tag, job);
  return { ...made, imageDigest, imageId, buildMs: tookMs() };
}

/**
 * The digest that the registry gives; null where only this host's image of that name can be used: one that the operator gives to
 * everybody, as others may hold what is private.
 */
async function digestOf(
  { engine, settings }: Host,
  source: ImageSource,
  job: JobRun,
): Promise<string | null> {
  const named = /@(sha256:[0-9a-f]{64})$/.exec(source.reference)?.[1];
  try {
    // Also of one named by digest: an engine gives it without asking if it holds it already, which may be for another tenant.
    const newest = await engine.registryDigest(source.reference, source.login, job.signal);
    return named ?? source.digest ?? newest;
  } catch (error) {
    job.signal.throwIfAborted();
    const isEverybodys =
      settings.localImages?.some((name) => tagOf(name) === tagOf(source.reference)) ?? false;
    const local = isEverybodys && source.login === null ? await engine.localImage(source.reference) : null;
    if (local !== null && (source.digest ?? local) === local) return null;
    // Its name may lead nowhere by now, or to another one.
    if (source.digest !== undefined) return source.digest;
    throw new JobError(refusalOf(source, String(error)), { cause: error });
  }
}

/**
 * Pulled by digest and never under its public name, which is taken away again: otherwise another tenant's deployment or
 * `FROM` of that name would find a private image here.
 */
async function pullPinned(
  host: Host,
  source: ImageSource,
  digest: string,
  tag: (id: string) => Promise<void>,
  job: JobRun,
): Promise<string> {
  const { engine } = host;
  const name = `${source.reference.replace(/@.*$/, "").replace(/:[^:/]*$/, "")}@${digest}`;
  const wasHere = (await engine.imageId(name)) !== null;
  const pull = () => pullAs(host, source, name, tag, job);
  // Another deployment of the same image may take the name away in between.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const id = await (wasHere ? pull() : undoneAfter(host, { kind: "image name", name }, pull));
    if (id !== null) return id;
  }
  throw new JobError(`The image ${source.reference} could not be pulled: deploy again.`);
}

async function pullAs(
  { engine, buildRoom }: Host,
  source: ImageSource,
  name: string,
  tag: (id: string) => Promise<void>,
  job: JobRun,
): Promise<string | null> {
  const room = await buildRoom.receive("image");
  try {
    await engine.pullImage(name, source.login, AbortSignal.any([job.signal, room.signal]));
  } catch (error) {
    job.signal.throwIfAborted();
    room.signal.throwIfAborted();
    throw new JobError(refusalOf(source, String(error)), { cause: error });
  } finally {
    room.end();
  }
  const id = await engine.imageId(name);
  if (id !== null) await tag(id);
  return id;
}

function refusalOf({ reference, login }: ImageSource, said: string): string {
  if (/no matching manifest|no match for platform|does not match the specified platform/i.test(said))
    return `The image ${reference} is not made for this host's processor: build it for linux/${platforms[process.arch] ?? process.arch} too.`;
  if (/toomanyrequests|too many requests|rate limit|\b429\b/i.test(said))
    return `The registry of ${reference} accepts no more requests from this host for now: try again later, or set registryUsername and registryPassword.`;
  if (/no space left on device/i.test(said))
    return `This host has too little free disk for the image ${reference}: try again later, use a smaller one, or ask the operator to make room.`;
  if (/unauthorized|denied|forbidden|basic auth|authentication required|\b40[13]\b/i.test(said))
    return login === null
      ? `The image ${reference} is private, or it does not exist: check its name, or set registryUsername and registryPassword.`
      : `The registry refuses the image ${reference} to ${login.username}: check registryUsername and registryPassword.`;
  if (/not found|manifest unknown|name unknown|\b404\b/i.test(said))
    return `The image ${reference} does not exist: check its name and tag.`;
  return `The image ${reference} could not be pulled: its registry could not be reached. Check the name, or try again later.`;
}

/** As images name them. */
const platforms: Partial<Record<string, string>> = { x64: "amd64", arm: "arm/v7" };

import type { JobArgs } from "../../protocol/agent/jobs.ts";
import type { SharedBase } from "../image-build/dockerfile/shared.ts";
import { pullBase } from "../image-build/ensure-image.ts";
import { basesOf } from "../image-build/image-provider.ts";
import { longestPullMs } from "../image-build/newer-images.ts";
import type { Prepared } from "../image-build/prepare.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";

type BuildBases = {
  /** Whether the engine has a base image, or gets it from a registry. */
  canHave(image: string): Promise<boolean>;
  /** The name of what sites on this host share of a base image, which it needs first. */
  shared(base: SharedBase): Promise<string | null>;
  /** All that a build begins with is as it shall be; what a registry may have newer is pulled once the deployment is over. */
  ready(prepared: Prepared): Promise<void>;
};

/** The base images of one deployment's build. Where everything is to be built again, they are pulled again first, once each. */
export function basesFor(
  host: Host,
  { rebuild }: Pick<JobArgs<"site.deploy">, "rebuild">,
  job: JobRun,
): BuildBases {
  const { engine, newerImages } = host;
  const pulled = new Set<string>();

  async function pullAgain(image: string): Promise<void> {
    if (!rebuild || pulled.has(image) || !(await newerImages?.mayReplace(image))) return;
    pulled.add(image);
    job.log(`Pulling ${image} again, as everything is built again.`);
    try {
      await newerImages?.pull(image, AbortSignal.any([job.signal, AbortSignal.timeout(longestPullMs)]));
    } catch (error) {
      job.signal.throwIfAborted();
      job.log(`No registry gave ${image}, so the one that this host has is used (${String(error)}).`);
    }
  }

  async function canHave(image: string): Promise<boolean> {
    if ((await engine.imageId(image)) !== null) {
      await pullAgain(image);
      return true;
    }
    job.log(`Pulling ${image}.`);
    try {
      await pullBase(host, image, job.signal);
      pulled.add(image);
      return true;
    } catch {
      job.signal.throwIfAborted();
      return false;
    }
  }

  /** Where the operator named a program that makes what no registry gives. */
  async function demand(images: readonly string[]): Promise<void> {
    if (!host.provideImage) return;
    for (const image of images) {
      if (await canHave(image)) continue;
      await host.provideImage(image, job);
      if ((await engine.imageId(image)) === null)
        throw new JobError(`The base image ${image} is missing on this host: ask the operator.`);
    }
  }

  return {
    canHave,
    async shared(base) {
      if (!host.sharedBases) return null;
      if (!(await canHave(base.image))) await demand(basesOf(`FROM ${base.image}`));
      return host.sharedBases(base, job);
    },
    async ready({ generated, bases }) {
      if (generated !== null) await demand(basesOf(generated));
      for (const image of bases) await pullAgain(image);
      job.afterwards(async () => void newerImages?.pullDaily(bases));
    },
  };
}

import type { Host } from "../host.ts";
import { JobError } from "../job.ts";
import { log } from "../log.ts";

type Puller = Pick<Host, "engine" | "newerImages" | "provideImage">;

/** @throws where no registry gives it */
export const pullBase = (host: Puller, image: string, signal: AbortSignal): Promise<void> =>
  host.newerImages?.pull(image, signal) ?? host.engine.pullImage(image, null, signal);

/** Pulled, or made by the operator's program. @throws JobError when the host cannot have it */
export async function ensureImage(host: Puller, image: string, signal: AbortSignal): Promise<void> {
  if ((await host.engine.imageId(image)) !== null) return;
  try {
    await pullBase(host, image, signal);
  } catch (error) {
    signal.throwIfAborted();
    await host.provideImage?.(image, { signal, log: (line) => log("info", line, { image }) });
    if ((await host.engine.imageId(image)) !== null) return;
    throw new JobError(
      `The host could not get ${image}: try again later, or ask the operator whether its registry can be reached.`,
      { cause: error },
    );
  }
}

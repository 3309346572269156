import { setTimeout as delay } from "node:timers/promises";
import { alone } from "../alone.ts";
import type { ContainerSpec } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import type { Host } from "../host.ts";
import { ensureImage } from "../image-build/ensure-image.ts";
import type { IngressSettings } from "../ingress/caddy.ts";
import { ingressImage, startIngress } from "../ingress/container.ts";
import { portsTaken } from "../ingress/ports.ts";
import { log } from "../log.ts";

/** The pause respects registries' rate limits. */
const pullAgainMs = 30_000;

export type IngressContainer = {
  /** Starts Caddy with this configuration; one that has it already is left alone. Never throws: `renew` is asked for again. */
  ensure: () => Promise<void>;
  /** Makes it anew. @throws if it cannot be; until its image is here, the one in place goes on, and is replaced then */
  renew: () => Promise<void>;
  /** Why none could be made when it was last tried, with what to do; null: it was, or the one in place goes on. */
  problem: () => string | null;
};

export function openIngressContainer(
  host: Pick<Host, "engine" | "newerImages" | "provideImage">,
  spec: ContainerSpec,
  settings: IngressSettings,
  signal: AbortSignal,
): IngressContainer {
  const { engine } = host;
  let pulling: Promise<void> | undefined;
  let problem: string | null = null;

  const notStarted = (error: unknown): void => {
    if (!signal.aborted)
      log("error", "The ingress was not started; sites are served if an earlier one is in place", { error });
  };

  async function make(): Promise<void> {
    const found = await engine.inspectContainer(spec.name);
    if ((await engine.imageId(ingressImage)) === null) {
      // In the background: it takes minutes, or never succeeds.
      pulling ??= untilImageIsHere(host, ingressImage, signal)
        .then(renew)
        .catch(notStarted)
        .finally(() => (pulling = undefined));
      if (found) await engine.startContainer(found.id);
      else
        problem = `The image ${ingressImage} has not been pulled yet, so no site can be served: see that the machine reaches its registry (docker pull ${ingressImage} shows the reason).`;
      throw new Error(`The image ${ingressImage} is missing`);
    }
    if (found) await engine.removeContainer(found.id);
    problem = await portsTaken(settings);
    if (problem !== null) throw new Error(problem);
    await startIngress(engine, spec);
  }

  const inTurn = (work: () => Promise<void>): Promise<void> => alone(`ingress ${spec.name}`, work);
  const renew = (): Promise<void> => inTurn(make);

  return {
    renew,
    problem: () => problem,
    ensure: () =>
      inTurn(async () => {
        const found = await engine.inspectContainer(spec.name);
        const isAsWanted = found?.labels[label.config] === spec.Labels[label.config];
        await (found && isAsWanted ? engine.startContainer(found.id) : make());
      }).catch(notStarted),
  };
}

async function untilImageIsHere(
  host: Parameters<typeof ensureImage>[0],
  image: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      return await ensureImage(host, image, signal);
    } catch (error) {
      signal.throwIfAborted();
      log("error", "The image of this host's ingress could not be pulled", { error });
      await delay(pullAgainMs, undefined, { signal, ref: false });
    }
  }
}

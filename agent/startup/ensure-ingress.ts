import { setTimeout as delay } from "node:timers/promises";
import { alone } from "../alone.ts";
import type { ContainerSpec, ContainerState } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import type { Host } from "../host.ts";
import { ensureImage } from "../image-build/ensure-image.ts";
import type { IngressSettings } from "../ingress/caddy.ts";
import { ingressImage, startIngress } from "../ingress/container.ts";
import { listenersAt, portsTaken } from "../ingress/ports.ts";
import { log } from "../log.ts";

/** The pause respects registries' rate limits. */
const pullAgainMs = 30_000;
/** A new one that does not listen by then is given up, and the one in place goes on. */
const listenWithinMs = 20_000;
const lookMs = 100;
/** Longer than Caddy gives its visitors to end what they began (`grace_period`). */
const graceSeconds = 12;

export type IngressContainer = {
  /**
   * Starts Caddy with this configuration; one that has it already is left alone, and one with another goes on until the new one takes
   * visitors beside it. Never throws: `renew` is asked for again.
   */
  ensure: () => Promise<void>;
  /** Makes one anew that hangs. @throws if it cannot be; until its image is here, the one in place goes on, and is replaced then */
  renew: () => Promise<void>;
  /** Why none could be made when it was last tried, with what to do; null: it was, or the one in place goes on until its image is here. */
  problem: () => string | null;
};

export function openIngressContainer(
  host: Pick<Host, "engine" | "newerImages" | "provideImage">,
  spec: ContainerSpec,
  settings: IngressSettings,
  signal: AbortSignal,
  listeners = listenersAt,
): IngressContainer {
  const { engine } = host;
  const formerName = `${spec.name}-former`;
  let pulling: Promise<void> | undefined;
  let problem: string | null = null;

  const notStarted = (error: unknown): void => {
    if (!signal.aborted)
      log("error", "The ingress was not started; sites are served if an earlier one is in place", { error });
  };

  /** @param isHung the one in place answers nobody, so nobody is to come to it while the new one starts */
  async function make(isHung: boolean): Promise<void> {
    const found = await engine.inspectContainer(spec.name);
    if ((await engine.imageId(ingressImage)) === null) {
      // In the background: it takes minutes, or never succeeds.
      pulling ??= untilImageIsHere(host, ingressImage, signal)
        .then(() => inTurn(() => make(isHung)))
        .catch(notStarted)
        .finally(() => (pulling = undefined));
      if (found) await engine.startContainer(found.id);
      else
        problem = `The image ${ingressImage} has not been pulled yet, so no site can be served: see that the machine reaches its registry (docker pull ${ingressImage} shows the reason).`;
      throw new Error(`The image ${ingressImage} is missing`);
    }
    const inPlace = [found, await engine.inspectContainer(formerName)].filter((one) => one !== null);
    const running = isHung ? undefined : inPlace.find((one) => one.running);
    const serving = running && !(await isStarting(running)) ? running : undefined;
    for (const { id } of inPlace) if (id !== serving?.id) await engine.removeContainer(id);
    if (serving) return startBeside(serving);
    problem = await portsTaken(settings);
    if (problem !== null) throw new Error(problem);
    await startIngress(engine, spec);
  }

  const listening = () =>
    listeners([settings.port, settings.statusPort, ...(settings.tls ? [settings.tls.port] : [])]);

  /** It serves nobody yet, and what it listens on in a moment could be taken for the new one's. */
  const isStarting = async ({ startedAt }: ContainerState): Promise<boolean> =>
    Date.now() - (startedAt?.getTime() ?? 0) < listenWithinMs &&
    (await listening()).every((count) => count === 0);

  /** Both have the ports then (SO_REUSEPORT), so that nobody is refused. If it does not start, the former one has its name again. */
  async function startBeside(former: ContainerState): Promise<void> {
    if (former.name !== formerName) await engine.renameContainer(former.id, formerName);
    const before = await listening();
    try {
      await startIngress(engine, spec);
      const deadline = performance.now() + listenWithinMs;
      while ((await listening()).some((now, index) => now <= (before[index] ?? 0))) {
        if (performance.now() > deadline) throw new Error("The new ingress does not listen");
        await delay(lookMs, undefined, { signal });
      }
    } catch (error) {
      const failed = await engine.inspectContainer(spec.name);
      if (failed) await engine.removeContainer(failed.id);
      await engine.renameContainer(former.id, spec.name);
      problem =
        "The ingress could not be replaced by one with the current configuration, so the former one goes on: the agent's log has the reason.";
      throw error;
    }
    problem = null;
    retire(former);
  }

  /** In the background: visitors may end what they began. An agent that ends meanwhile leaves it to the next one. */
  function retire({ id }: ContainerState): void {
    engine
      .stopContainer(id, graceSeconds)
      .then(() => engine.removeContainer(id))
      .catch((error: unknown) => log("error", "The former ingress was not removed", { error }));
  }

  const inTurn = (work: () => Promise<void>): Promise<void> => alone(`ingress ${spec.name}`, work);

  return {
    renew: () => inTurn(() => make(true)),
    problem: () => problem,
    ensure: () =>
      inTurn(async () => {
        const found = await engine.inspectContainer(spec.name);
        const isAsWanted = found?.labels[label.config] === spec.Labels[label.config];
        if (!found || !isAsWanted) return make(false);
        await engine.startContainer(found.id);
        const former = await engine.inspectContainer(formerName);
        if (former) retire(former);
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

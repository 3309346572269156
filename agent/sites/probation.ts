import { setTimeout as delay } from "node:timers/promises";
import type { ContainerState, Engine } from "../docker/engine.ts";
import type { Host } from "../host.ts";
import { servingIds, type Target } from "../ingress/ingress.ts";
import { JobError } from "../job.ts";
import { exitReason } from "./readiness.ts";
import { targetNow } from "./readdress.ts";

/**
 * Waits until the containers, which serve by now, have run long enough to be live. Where one exits before, what served
 * until then serves again. @throws JobError with the reason of the exit
 */
export async function passProbation(
  host: Host,
  siteId: string,
  { containers, started }: { containers: readonly ContainerState[]; started: number },
  signal: AbortSignal,
): Promise<void> {
  const exit = await firstExit(host.engine, containers, host.settings.probationSeconds, signal);
  if (!exit) return host.ingress.settle(siteId);
  // Before anything else, as visitors wait; it is tried again where it fails.
  if ((await fallbackOf(host, siteId)).every(({ running }) => running))
    await takeBack(host, siteId).catch(() => undefined);
  throw new JobError(await exitReason(host.engine, exit.id, exit.exitCode, started));
}

async function firstExit(
  engine: Engine,
  containers: readonly ContainerState[],
  seconds: number,
  signal: AbortSignal,
): Promise<{ id: string; exitCode: number } | null> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  try {
    const exits = containers.map(({ id, startedAt }) =>
      engine.firstExit(id, startedAt ?? new Date(), stop).then(
        (exitCode) => ({ id, exitCode }),
        // Whether it ends is not known: it is looked at in the end.
        () => new Promise<never>(() => undefined),
      ),
    );
    const first = await Promise.race([...exits, delay(seconds * 1000, null, { signal: stop })]);
    if (first) return first;
    for (const { id, restarts } of containers) {
      const now = await engine.inspectContainer(id);
      if (!now?.running || now.restarts > restarts) return { id, exitCode: now?.exitCode ?? 1 };
    }
    return null;
  } finally {
    over.abort();
  }
}

/** The containers that serve again where a probation is not passed, as they are now. Those that are gone are left out. */
export async function fallbackOf(
  { engine, ingress }: Host,
  siteId: string,
): Promise<{ target: Target; running: boolean }[]> {
  const found = (ingress.fallback(siteId) ?? []).map(async (target) => {
    const state = await engine.inspectContainer(target.containerId);
    if (!state) return [];
    return [{ target: targetNow(target, state), running: state.running }];
  });
  return (await Promise.all(found)).flat();
}

/** What served before the probation is answered again, at the addresses that it has now. */
export async function takeBack(host: Host, siteId: string): Promise<void> {
  const targets = (await fallbackOf(host, siteId)).map(({ target }) => target);
  await host.ingress.takeBack(siteId, targets);
}

/** An agent before this one has removed what did not pass its probation, and ended before what served until then ran again. */
export async function endLostProbation(host: Host, siteId: string): Promise<void> {
  const { engine, ingress } = host;
  if (ingress.fallback(siteId) === null) return;
  const serving = await Promise.all(servingIds(ingress, siteId).map((id) => engine.inspectContainer(id)));
  if (serving.some((state) => state !== null)) return;
  for (const { target, running } of await fallbackOf(host, siteId))
    if (!running) await engine.startContainer(target.containerId);
  await takeBack(host, siteId);
}

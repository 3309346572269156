import type { Engine } from "../docker/engine.ts";
import { volumesOf } from "../docker/specs.ts";
import { log } from "../log.ts";
import { writersOf } from "../sites/volumes.ts";

/** How long a site's visitors wait at most. */
const stillMs = 5000;
const againMs = 1000;

/** The running containers that can write to a volume. */
export async function usersOf(engine: Engine, siteId: string, volume: string): Promise<string[]> {
  const writers = await writersOf(engine, siteId);
  return writers.filter(({ labels }) => volumesOf(labels).includes(volume)).map(({ id }) => id);
}

export type Standstill = {
  /** @returns whether all of them stood still until now */
  end(): Promise<boolean>;
};

/** Until when each container is frozen for somebody, who would wake it for others too. */
const frozen = new Map<string, Promise<void>>();

/**
 * Freezes the containers, for some seconds at most: an agent that ends meanwhile wakes them when it starts again. One
 * that has just ended needs no freezing.
 */
export async function standStill(engine: Engine, containerIds: readonly string[]): Promise<Standstill> {
  if (containerIds.length === 0) return { end: () => Promise.resolve(true) };
  for (;;) {
    const others = containerIds.flatMap((id) => frozen.get(id) ?? []);
    if (others.length === 0) break;
    await Promise.all(others);
  }
  const over = Promise.withResolvers<void>();
  for (const id of containerIds) frozen.set(id, over.promise);
  let isStill = true;
  let isFreezing = true;
  const resumeAll = () => Promise.all(containerIds.map((id) => resume(engine, id)));
  async function wake(): Promise<void> {
    await resumeAll();
    // The engine may freeze one only after all were woken.
    if (isFreezing) return;
    for (const id of containerIds) if (frozen.get(id) === over.promise) frozen.delete(id);
    over.resolve();
  }
  const timer = setTimeout(() => {
    isStill = false;
    void wake();
  }, stillMs);
  try {
    for (const id of containerIds) await engine.pauseContainer(id);
  } catch (error) {
    // runc cannot freeze every busy container: its volume is read as one of a container that may not stand still for longer.
    log("warn", "A container was not frozen: it can write while its volume is read", { containerIds, error });
    clearTimeout(timer);
    isStill = false;
  }
  isFreezing = false;
  if (!isStill) await wake();
  return {
    async end() {
      clearTimeout(timer);
      if (isStill) await wake();
      return isStill;
    },
  };
}

/** Waits for one attempt; those that follow a failure are nobody's to wait for, and outlive the job. */
async function resume(engine: Engine, id: string, isFirst = true): Promise<void> {
  try {
    await engine.resumeContainer(id);
  } catch (error) {
    if (isFirst) log("error", "A container was not resumed yet: it is tried until it is", { id, error });
    setTimeout(() => void resume(engine, id, false), againMs).unref();
  }
}

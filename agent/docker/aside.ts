import type { ContainerSummary, Engine } from "./engine.ts";

/**
 * Resources that no record knows are stopped and kept. Docker sets labels at creation only, so the name marks the
 * container and the time, which also frees its regular name for a job.
 */
const asideName = /^aside-(\d+)-/;

export const isAside = ({ name }: Pick<ContainerSummary, "name">): boolean => asideName.test(name);

export function asideSince({ name }: Pick<ContainerSummary, "name">): Date | null {
  const at = asideName.exec(name)?.[1];
  return at === undefined ? null : new Date(Number(at));
}

/** Idempotent. */
export async function putAside(
  engine: Pick<Engine, "stopContainer" | "renameContainer">,
  container: ContainerSummary,
  graceSeconds: number,
  now: Date,
): Promise<void> {
  // Rename first: a restarted engine does not start stopped containers, but a sweep might remove one with its regular
  // name.
  if (!isAside(container))
    await engine.renameContainer(container.id, `aside-${now.getTime()}-${container.name}`);
  if (container.running) await engine.stopContainer(container.id, graceSeconds);
}

import type { ContainerSummary, Engine } from "./engine.ts";

/**
 * What no record knows is stopped and kept. Docker sets labels at creation only: so the name says it, and since when, and the name
 * that a job would give its container is free.
 */
const asideName = /^aside-(\d+)-/;

export const isAside = ({ name }: Pick<ContainerSummary, "name">): boolean => asideName.test(name);

export function asideSince({ name }: Pick<ContainerSummary, "name">): Date | null {
  const at = asideName.exec(name)?.[1];
  return at === undefined ? null : new Date(Number(at));
}

/** Done twice is done once. */
export async function putAside(
  engine: Pick<Engine, "stopContainer" | "renameContainer">,
  container: ContainerSummary,
  graceSeconds: number,
  now: Date,
): Promise<void> {
  // The name first: an engine that starts again starts nothing that was stopped by hand, but a sweep might remove it.
  if (!isAside(container))
    await engine.renameContainer(container.id, `aside-${now.getTime()}-${container.name}`);
  if (container.running) await engine.stopContainer(container.id, graceSeconds);
}

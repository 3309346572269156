import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { endStrays } from "../databases/backups/strays.ts";
import { isEmptied } from "../databases/data.ts";
import { removeEmptyLock } from "../databases/postgresql/empty-lock.ts";
import type { ContainerSummary } from "../docker/engine.ts";
import { holdToPack } from "../docker/start-speed.ts";
import { isReleaseCommand, stopGraceOf, stopGraceSeconds, volumesOf } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { isAside } from "../docker/aside.ts";
import { log } from "../log.ts";
import { isHandingOver } from "../sites/hand-over.ts";
import { endLostProbation } from "../sites/probation.ts";
import { isNote, undoLeftOvers } from "../sites/left-over.ts";
import { readdress, readdressAll } from "../sites/readdress.ts";
import { label } from "../docker/labels.ts";
import { removeTree } from "../remove-tree.ts";

/** Added to the command's own timeout. */
const unclaimedMs = 10 * 60_000;

/**
 * Cleans up after a crash, a reboot or an engine restart: removes work directories and containers that neither run
 * nor are routed, starts routed containers and databases and updates their addresses. It runs before the agent takes
 * work and tolerates failures, so that no tenant's container can keep the agent from starting.
 * @param out databases that were stopped because they kept exiting; they stay down until their owner starts them
 */
export async function sweep(host: Host, out: ReadonlySet<string> = new Set()): Promise<void> {
  await readdressAll(host);
  for (const name of (await readdir(host.workDirectory)).filter((one) => !isNote(one)))
    await removeTree(join(host.workDirectory, name)).catch((error) =>
      log("error", "A work directory was not removed", { name, error }),
    );
  for (const { id, labels, running } of await host.engine.listContainers({ [label.agent]: host.agentId }))
    if (running && volumesOf(labels).length > 0)
      await host.engine
        .resumeContainer(id)
        .catch((error) => log("error", "A container was not resumed", { id, error }));
  await reviveSites(host);
  for (const container of await host.engine.listContainers({ [label.agent]: host.agentId }))
    await sweepContainer(host, container, out).catch((error) =>
      log("error", "A container was not swept", { id: container.id, error }),
    );
  await undoLeftOvers(host);
}

async function sweepContainer(
  host: Host,
  container: ContainerSummary,
  out: ReadonlySet<string>,
): Promise<void> {
  const { id, labels, running } = container;
  if (running) await hold(host, id);
  // Backup helpers ended with the agent that supervised them.
  if (labels[label.copy]) return host.engine.removeContainer(id);
  if (labels[label.database] && running)
    await endStrays(host.engine, id).catch((error) =>
      log("warn", "A backup's leftover programs were not ended", { id, error }),
    );
  if (isAside(container)) return running ? host.engine.stopContainer(id, stopGraceSeconds) : undefined;
  await reviveDatabase(host, container, out);
  if (isReleaseCommand(labels)) return endReleaseCommand(host, container);
  const siteId = labels[label.site];
  if (!siteId || host.ingress.lost().includes(siteId)) return;
  const routed = host.ingress.current(siteId);
  if (routed === "parked") {
    // The containers stay for the next start. A running one was being stopped or created when the previous agent
    // ended.
    if (running) await host.engine.stopContainer(id, stopGraceOf(labels));
    return;
  }
  if (routed?.some(({ containerId }) => containerId === id)) return;
  // It serves again if the version in service fails its probation.
  if (host.ingress.fallback(siteId)?.some(({ containerId }) => containerId === id)) return;
  // Resumes draining an old version.
  const retiring = routed && running ? host.goOnRetiring(id) : null;
  if (retiring === "under way") return;
  if (running && retiring === null) return keepUnrouted(host, container, routed ?? []);
  await host.engine.removeContainer(id);
}

/**
 * It may be half created, or the routing table outdated or wrong: a running container is kept until the control plane
 * has decided. Two containers must never write to one volume: if another one is known to serve, this one is stopped.
 */
async function keepUnrouted(
  { engine }: Host,
  { id, labels }: ContainerSummary,
  routed: readonly Target[],
): Promise<void> {
  log("warn", "A container runs that the ingress has no route to", { id, siteId: labels[label.site] });
  if (volumesOf(labels).length === 0) return;
  for (const { containerId } of routed)
    if ((await engine.inspectContainer(containerId))?.running)
      return engine.stopContainer(id, stopGraceOf(labels));
}

async function hold({ engine }: Host, id: string): Promise<void> {
  const found = await engine.inspectContainer(id);
  if (found) holdToPack(found);
}

/**
 * It keeps running for the next attempt, which follows shortly; if its deployment was given up meanwhile, this
 * timeout ends it.
 */
function endReleaseCommand({ engine }: Host, { id, labels }: ContainerSummary): void {
  const onError = (error: unknown) =>
    log("error", "A release command's container was not removed", { id, error });
  const end = () => void engine.removeContainer(id).catch(onError);
  setTimeout(end, Number(labels[label.timeout]) * 1000 + unclaimedMs).unref();
}

/**
 * After an engine restart: starts sites in service and databases that ended with it, because not every engine
 * restarts all of them. Containers that jobs are working on are left to the jobs.
 */
export async function reviveServing(host: Host, out: ReadonlySet<string>): Promise<void> {
  await readdressAll(host);
  await reviveSites(host);
  for (const container of await host.engine.listContainers({ [label.agent]: host.agentId }))
    await reviveDatabase(host, container, out);
}

async function reviveSites(host: Host): Promise<void> {
  for (const siteId of host.ingress.sites()) {
    if (!isHandingOver(siteId))
      await endLostProbation(host, siteId).catch((error) =>
        log("error", "What served before a probation does not serve again", { siteId, error }),
      );
    for (const { containerId } of servingOf(host.ingress, siteId))
      if (!isHandingOver(siteId)) await revive(host, siteId, containerId);
  }
}

/** A stopped database has no container. */
async function reviveDatabase(
  host: Host,
  { id, name, labels }: ContainerSummary,
  out: ReadonlySet<string>,
): Promise<void> {
  if (isAside({ name })) return;
  const databaseId = labels[label.database];
  if (!databaseId || labels[label.copy] || out.has(databaseId)) return;
  try {
    // Inspect instead of using the list: Docker may list a container that has just ended as running.
    const found = await host.engine.inspectContainer(id);
    // A container that never ran may lack its initial files: the job that creates it starts it.
    if (!found || found.running || found.startedAt === null) return;
    // The control plane sees that it does not run and queues a start job, whose failure gives the reason.
    if (await isEmptied(host.engine, labels))
      return log("error", "A database's data is gone", { databaseId });
    await removeEmptyLock(host.engine, labels);
    await host.engine.startContainer(id);
  } catch (error) {
    log("error", "A database was not started", { id, error });
  }
}

/** Starts a container that serves a site and updates its address in the ingress. */
async function revive(host: Host, siteId: string, containerId: string): Promise<void> {
  try {
    const found = await host.engine.inspectContainer(containerId);
    if (found && !found.running) await host.engine.startContainer(found.id);
    await readdress(host, siteId, containerId);
  } catch (error) {
    log("error", "A site's container was not started", { siteId, containerId, error });
  }
}

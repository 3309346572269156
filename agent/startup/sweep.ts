import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { endStrays } from "../databases/backups/strays.ts";
import { isEmptied } from "../databases/data.ts";
import { removeEmptyLock } from "../databases/postgresql/empty-lock.ts";
import type { ContainerSummary } from "../docker/engine.ts";
import { holdToPack } from "../docker/start-speed.ts";
import { isReleaseCommand, stopGraceSeconds, volumesOf } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { isAside } from "../docker/aside.ts";
import { log } from "../log.ts";
import { isHandingOver } from "../sites/hand-over.ts";
import { endLostProbation } from "../sites/probation.ts";
import { readdress } from "../sites/readdress.ts";
import { label } from "../docker/labels.ts";

/** Beside its own time. */
const unclaimedMs = 10 * 60_000;

/**
 * What a crash, a reboot or an engine restart left: work directories and containers that neither run nor are routed go, routed
 * containers run again and are reached at the address they have now, and so do databases. Runs before the agent takes work, and whatever
 * one of them does: a tenant's container that cannot be started must not keep the agent from starting.
 * @param out databases that were stopped because they kept exiting: they wait for their owner
 */
export async function sweep(host: Host, out: ReadonlySet<string> = new Set()): Promise<void> {
  for (const name of await readdir(host.workDirectory))
    await rm(join(host.workDirectory, name), { recursive: true, force: true });
  await reviveSites(host);
  for (const container of await host.engine.listContainers({ [label.agent]: host.agentId }))
    await sweepContainer(host, container, out).catch((error) =>
      log("error", "A container was not swept", { id: container.id, error }),
    );
}

async function sweepContainer(
  host: Host,
  container: ContainerSummary,
  out: ReadonlySet<string>,
): Promise<void> {
  const { id, labels, running } = container;
  if (running) await hold(host, id);
  // What made or proved a backup ended with the agent that watched over it.
  if (labels[label.copy]) return host.engine.removeContainer(id);
  if (labels[label.database] && running)
    await endStrays(host.engine, id).catch((error) => log("warn", "A backup's remains stay", { id, error }));
  if (isAside(container)) return running ? host.engine.stopContainer(id, stopGraceSeconds) : undefined;
  await reviveDatabase(host, container, out);
  if (isReleaseCommand(labels)) return endReleaseCommand(host, container);
  const siteId = labels[label.site];
  if (!siteId || host.ingress.lost().includes(siteId)) return;
  const routed = host.ingress.current(siteId);
  if (routed === "parked") {
    // They stay for the next start. One that runs was being stopped, or made, when the agent before this one ended.
    if (running) await host.engine.stopContainer(id, stopGraceSeconds);
    return;
  }
  if (routed?.some(({ containerId }) => containerId === id)) return;
  // It serves again where the version in service does not pass its probation.
  if (host.ingress.fallback(siteId)?.some(({ containerId }) => containerId === id)) return;
  // An old version still ends what it began.
  const retiring = routed && running ? host.goOnRetiring(id) : null;
  if (retiring === "under way") return;
  if (running && retiring === null) return keepUnrouted(host, container, routed ?? []);
  await host.engine.removeContainer(id);
}

/**
 * It may be what was half made, or the table may be an older one, or wrong: what runs is kept until the control plane has said what
 * it is. Two never write to one volume: where another is known to serve, this one ends.
 */
async function keepUnrouted(
  { engine }: Host,
  { id, labels }: ContainerSummary,
  routed: readonly Target[],
): Promise<void> {
  log("warn", "A container runs that the ingress does not lead to", { id, siteId: labels[label.site] });
  if (volumesOf(labels).length === 0) return;
  for (const { containerId } of routed)
    if ((await engine.inspectContainer(containerId))?.running)
      return engine.stopContainer(id, stopGraceSeconds);
}

async function hold({ engine }: Host, id: string): Promise<void> {
  const found = await engine.inspectContainer(id);
  if (found) holdToPack(found);
}

/** It runs on for the next attempt, which comes in a moment. Where its deployment was given up meanwhile, not for ever. */
function endReleaseCommand({ engine }: Host, { id, labels }: ContainerSummary): void {
  const onError = (error: unknown) => log("error", "A release command's container stays", { id, error });
  const end = () => void engine.removeContainer(id).catch(onError);
  setTimeout(end, Number(labels[label.timeout]) * 1000 + unclaimedMs).unref();
}

/**
 * The engine is there again: sites in service and databases that ended with it run again, as not every engine starts all of
 * them by itself. What jobs are making is theirs.
 */
export async function reviveServing(host: Host, out: ReadonlySet<string>): Promise<void> {
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
    // Not what the list says of it: Docker lists a container that has just ended as one that runs.
    const found = await host.engine.inspectContainer(id);
    // One that never ran may lack the files it starts with: the job that makes it starts it.
    if (!found || found.running || found.startedAt === null) return;
    // The control plane, told that it does not run, has it started by a job, whose refusal says why.
    if (await isEmptied(host.engine, labels))
      return log("error", "A database's data is gone", { databaseId });
    await removeEmptyLock(host.engine, labels);
    await host.engine.startContainer(id);
  } catch (error) {
    log("error", "A database was not started", { id, error });
  }
}

/** A container that serves a site runs, and the ingress knows its address. */
async function revive(host: Host, siteId: string, containerId: string): Promise<void> {
  try {
    const found = await host.engine.inspectContainer(containerId);
    if (found && !found.running) await host.engine.startContainer(found.id);
    await readdress(host, siteId, containerId);
  } catch (error) {
    log("error", "A site's container was not started", { siteId, containerId, error });
  }
}

import type { ContainerState } from "../docker/engine.ts";
import { replicaOf } from "../docker/specs.ts";
import { engineSaid } from "../docker/engine-refusal.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import { endService, lastWords, sayReplicaOut, serves, type Watched } from "./watch.ts";
import { label } from "../docker/labels.ts";

type Means = Pick<Watched, "engine" | "ingress" | "records" | "agentId" | "out" | "onCrash"> & {
  /** A job has stopped the site's serving container in order to start another one in its place. */
  isHandingOver: (siteId: string) => boolean;
};
type Doubt = { sinceMs: number; refusals: number };

/** Grace period for the component that ended a container to finish, such as taking its version out of service. */
const settleMs = 3000;
/** The number of consecutive failures to create or start a container before giving up. */
const maxRefusals = 5;
/** A container that ended without coming into service is forgotten after this. */
const forgetMs = 10 * 60_000;

/**
 * Keeps containers in service running: starts again those that the engine does not bring back or that were stopped by
 * hand, and takes those that are gone or cannot be started out of service with the reason. Only checks containers
 * that ended.
 */
export class ContainerSupervisor {
  private readonly means: Means;
  private readonly doubts = new Map<string, Doubt>();

  constructor(means: Means) {
    this.means = means;
  }

  /** Call when the container ended. */
  doubt(containerId: string): void {
    this.doubts.set(containerId, { sinceMs: performance.now(), refusals: 0 });
  }

  /** Call when events may have been missed. */
  doubtAll(): void {
    const { ingress } = this.means;
    for (const siteId of ingress.sites())
      for (const { containerId } of servingOf(ingress, siteId)) this.doubt(containerId);
  }

  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () => this.look());
  }

  async look(): Promise<void> {
    const { engine, ingress, agentId } = this.means;
    for (const [containerId, { sinceMs }] of this.doubts)
      if (performance.now() - sinceMs > forgetMs) this.doubts.delete(containerId);
    if (this.doubts.size === 0) return;
    // An engine with another data directory, as after a misconfiguration, lacks all containers: none counts as gone
    // then.
    const isOurs = await engine.listContainers({ [label.ingress]: agentId }).then(
      (found) => found.length > 0,
      () => false,
    );
    if (!isOurs) return;
    for (const siteId of ingress.sites())
      for (const target of servingOf(ingress, siteId))
        await this.lookAt(siteId, target).catch((error) =>
          log("error", "Containers in service were not checked", { siteId, error }),
        );
  }

  private async lookAt(siteId: string, target: Target): Promise<void> {
    const { engine, out } = this.means;
    const { containerId } = target;
    const doubt = this.doubts.get(containerId);
    if (!doubt || out.has(containerId) || this.means.isHandingOver(siteId)) return;
    // The container is still serving, so keep waiting, however long the engine pauses between its own attempts.
    doubt.sinceMs = performance.now();
    const found = await engine.inspectContainer(containerId);
    if (found?.running) {
      if (found.pid > 0) this.doubts.delete(containerId);
      return;
    }
    // Absolute, because the clock may have been set since.
    const endedMs = Math.abs(Date.now() - (found?.finishedAt?.getTime() ?? 0));
    if (endedMs < settleMs || !this.isMine(siteId, containerId)) return;
    try {
      if (!found) throw new Error("gone");
      await engine.startContainer(containerId);
      doubt.refusals = 0;
    } catch (error) {
      log("error", "A site's container was not started", { siteId, containerId, error });
      if (++doubt.refusals < maxRefusals) return;
      // Retried if it cannot be recorded, as on a full disk.
      await this.giveUp(siteId, target, found, error);
      this.doubts.delete(containerId);
    }
  }

  private async giveUp(
    siteId: string,
    { containerId, ...target }: Target,
    found: ContainerState | null,
    refusal: unknown,
  ): Promise<void> {
    const { engine, ingress, out } = this.means;
    const others = servingOf(ingress, siteId).filter(
      (one) => one.containerId !== containerId && one.down !== true && !out.has(one.containerId),
    );
    const who = others.length > 0 ? (found ? `Replica ${replicaOf(found.labels)}` : "A replica") : "The app";
    const reason = found
      ? `${who} is not running, and its container cannot be started: ${engineSaid(refusal)} Start the site again or deploy it; ask the operator about the host if that fails as well.`
      : `${who} is not running: its container was removed from the host. Start the site again.`;
    if (others.length > 0) {
      out.add(containerId);
      return sayReplicaOut(
        this.means,
        siteId,
        containerId,
        `${reason} The site's other replicas keep serving.`,
      );
    }
    const error = found ? await lastWords(engine, found, reason) : reason;
    const deploymentId = found?.labels[label.deployment] || target.deploymentId;
    if (deploymentId === undefined || !this.isMine(siteId, containerId)) return;
    await endService(this.means, { siteId, containerId, deploymentId, reason, error });
  }

  /** It should be running, as far as is known at this moment. */
  private isMine(siteId: string, containerId: string): boolean {
    return !this.means.isHandingOver(siteId) && serves(this.means.ingress, siteId, containerId);
  }
}

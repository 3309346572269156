import type { ContainerState } from "../docker/engine.ts";
import { replicaOf } from "../docker/specs.ts";
import { engineSaid } from "../docker/engine-refusal.ts";
import { servingOf, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import { endService, lastWords, sayLoop, serves, type Watched } from "./watch.ts";
import { label } from "../docker/labels.ts";

type Means = Pick<Watched, "engine" | "ingress" | "records" | "agentId" | "out" | "onCrash"> & {
  /** A job has stopped what serves the site, to start something else in its place. */
  isHandingOver: (siteId: string) => boolean;
};
type Doubt = { sinceMs: number; refusals: number };

/** So long whoever ended a container may take for what it is about, such as taking its version out of service. */
const settleMs = 3000;
/** So often in a row it is not to be had, or not started, before nobody waits for it any more. */
const maxRefusals = 5;
/** A container that ended and does not come into service meanwhile is nobody's concern. */
const forgetMs = 10 * 60_000;

/**
 * What is in service runs: a container that the engine does not bring back, or somebody stopped by hand, is started again; one
 * that is gone, or cannot be started, is taken out of service with the reason. Only those that ended are looked at.
 */
export class ContainerSupervisor {
  private readonly means: Means;
  private readonly doubts = new Map<string, Doubt>();

  constructor(means: Means) {
    this.means = means;
  }

  /** It ended. */
  doubt(containerId: string): void {
    this.doubts.set(containerId, { sinceMs: performance.now(), refusals: 0 });
  }

  /** Nobody knows what happened meanwhile. */
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
    // With its data elsewhere, as after a wrong setting, the engine lacks all of them: none is gone for that.
    const isOurs = await engine.listContainers({ [label.ingress]: agentId }).then(
      (found) => found.length > 0,
      () => false,
    );
    if (!isOurs) return;
    for (const siteId of ingress.sites())
      for (const target of servingOf(ingress, siteId))
        await this.lookAt(siteId, target).catch((error) =>
          log("error", "What does not run was not mended", { siteId, error }),
        );
  }

  private async lookAt(siteId: string, target: Target): Promise<void> {
    const { engine, out } = this.means;
    const { containerId } = target;
    const doubt = this.doubts.get(containerId);
    if (!doubt || out.has(containerId) || this.means.isHandingOver(siteId)) return;
    // As long as it serves and is not up, however long the engine pauses between its own tries.
    doubt.sinceMs = performance.now();
    const found = await engine.inspectContainer(containerId);
    if (found?.running) {
      if (found.pid > 0) this.doubts.delete(containerId);
      return;
    }
    // Either way: the clock may have been set since.
    const endedMs = Math.abs(Date.now() - (found?.finishedAt?.getTime() ?? 0));
    if (endedMs < settleMs || !this.isMine(siteId, containerId)) return;
    try {
      if (!found) throw new Error("gone");
      await engine.startContainer(containerId);
      doubt.refusals = 0;
    } catch (error) {
      log("error", "What serves a site was not started", { siteId, containerId, error });
      if (++doubt.refusals < maxRefusals) return;
      // It is tried again where it cannot be written down, as on a full disk.
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
      ? `${who} does not run, and its container cannot be started: ${engineSaid(refusal)} Start the site again or deploy it; ask the operator about the host if that fails as well.`
      : `${who} does not run: its container was removed from the host by somebody. Start the site again.`;
    if (others.length > 0) {
      out.add(containerId);
      return sayLoop(this.means, siteId, containerId, `${reason} The site's other replicas serve on.`);
    }
    const error = found ? await lastWords(engine, found, reason) : reason;
    const deploymentId = found?.labels[label.deployment] || target.deploymentId;
    if (deploymentId === undefined || !this.isMine(siteId, containerId)) return;
    await endService(this.means, { siteId, containerId, deploymentId, reason, error });
  }

  /** It is to run, as far as is known at this moment. */
  private isMine(siteId: string, containerId: string): boolean {
    return !this.means.isHandingOver(siteId) && serves(this.means.ingress, siteId, containerId);
  }
}

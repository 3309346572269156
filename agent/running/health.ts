import type { Engine } from "../docker/engine.ts";
import { replicaOf } from "../docker/specs.ts";
import { probe } from "../ingress/probe.ts";
import { servingOf, type Ingress, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import type { Records } from "./records.ts";
import { sideBySide } from "./side-by-side.ts";
import { label } from "../docker/labels.ts";

type Means = { engine: Engine; ingress: Ingress; records: Records; agentId: string };
type Asked = { siteId: string; target: Target; labels: Record<string, string>; path: string };

/** The number of consecutive failures before an event is recorded: a single one may be a busy moment. */
const failuresToSay = 3;
const answerMs = 5000;
/** Concurrent checks. */
const concurrency = 16;

/**
 * Runs the health checks of serving containers as at their deployment, and records an event when one fails and when
 * it recovers. It restarts nothing: if a check fails because of a dependency, a restart would take the site down as
 * well.
 */
export class HealthWatch {
  private readonly means: Means;
  private failures = new Map<string, number>();

  constructor(means: Means) {
    this.means = means;
  }

  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () =>
      this.look(signal).catch((error) => log("error", "Health checks were not run", { error })),
    );
  }

  async look(signal: AbortSignal): Promise<void> {
    const asked = await this.asked();
    const serving = new Set(asked.map(({ target }) => target.containerId));
    this.failures = new Map([...this.failures].filter(([id]) => serving.has(id)));
    await sideBySide(asked, concurrency, (one) => this.ask(one, signal));
  }

  /** Running containers with a health check. */
  private async asked(): Promise<Asked[]> {
    const { engine, ingress, agentId } = this.means;
    const all = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
    const running = new Map(all.filter((one) => one.running).map(({ id, labels }) => [id, labels]));
    return ingress.sites().flatMap((siteId) =>
      servingOf(ingress, siteId).flatMap((target) => {
        const labels = running.get(target.containerId);
        const path = labels?.[label.health];
        return labels && path ? [{ siteId, target, labels, path }] : [];
      }),
    );
  }

  private async ask({ siteId, target, labels, path }: Asked, signal: AbortSignal): Promise<void> {
    const { containerId, address, port } = target;
    const [hostname] = this.means.ingress.hostnames(siteId);
    const answer = await probe({ address, port, path, hostname }, answerMs, signal);
    if (signal.aborted || !this.stillServes(siteId, target)) return;
    const failures = this.failures.get(containerId) ?? 0;
    const who = `version ${labels[label.deployment]}${Number(labels[label.replicas]) > 1 ? `, replica ${replicaOf(labels)}` : ""}`;
    if (answer !== true) {
      this.failures.set(containerId, failures + 1);
      if (failures + 1 === failuresToSay)
        this.say(
          siteId,
          containerId,
          "unhealthy",
          `The health check ${path} of ${who} ${answer}, ${failuresToSay} times in a row.`,
        );
      return;
    }
    this.failures.delete(containerId);
    if (failures >= failuresToSay)
      this.say(siteId, containerId, "healthy", `The health check ${path} of ${who} succeeds again.`);
  }

  /** It was neither swapped nor given another address meanwhile. */
  private stillServes(siteId: string, asked: Target): boolean {
    return servingOf(this.means.ingress, siteId).some(
      ({ containerId, address }) => containerId === asked.containerId && address === asked.address,
    );
  }

  private say(siteId: string, containerId: string, kind: "healthy" | "unhealthy", detail: string): void {
    this.means.records.addEvent(siteId, containerId, { at: new Date().toISOString(), kind, detail });
  }
}

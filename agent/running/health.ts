import type { Engine } from "../docker/engine.ts";
import type { FailingCheck } from "../../protocol/agent/messages.ts";
import type { Id } from "../../protocol/ids.ts";
import type { HealthCheck } from "../../protocol/api/sites.ts";
import { healthCheckOf, healthPathOf, replicaOf } from "../docker/specs.ts";
import { probe } from "../ingress/probe.ts";
import { servingOf, type Ingress, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import type { Records } from "./records.ts";
import { sideBySide } from "./side-by-side.ts";
import { label } from "../docker/labels.ts";

type Means = {
  engine: Engine;
  ingress: Ingress;
  records: Records;
  agentId: string;
  now?: () => number;
  /**
   * Which sites' checks fail is known, or has changed: tells the control plane, as their owners may want to know. First
   * called once each usual check has succeeded or failed often enough, as a new agent knows nothing of earlier failures.
   */
  onFailing?: (all: FailingCheck[]) => void;
};
type Asked = {
  siteId: string;
  target: Target;
  labels: Record<string, string>;
  path: string | null;
  check: HealthCheck;
};
/** Of one container: failures in a row, when it was last asked, and the event of a check that still fails. */
type State = { siteId: string; failures: number; askedAtMs: number; failing?: string };
const isUnsure = ({ failures, failing }: State): boolean => failures > 0 && failing === undefined;

/** Unless its site says otherwise. Failures in a row before an event is recorded: a single one may be a busy moment. */
const usual = { failures: 3, intervalSeconds: 30, timeoutSeconds: 5 };
/** How long a new agent waits for checks that are partway through their failures: as long as usual ones take. */
const unsureMs = (usual.failures - 1) * usual.intervalSeconds * 1000;
/** Timers may fire a little early. */
const earlyMs = 500;
/** Concurrent checks. */
const concurrency = 16;

/**
 * Runs the health checks of serving containers as at their deployment, and records an event when one fails and when
 * it recovers. It restarts nothing: if a check fails because of a dependency, a restart would take the site down as
 * well.
 */
export class HealthWatch {
  private readonly means: Means;
  private readonly now: () => number;
  private states = new Map<string, State>();
  private told: string | null = null;
  private firstAtMs: number | undefined;

  constructor(means: Means) {
    this.means = means;
    this.now = means.now ?? (() => performance.now());
  }

  watch(intervalMs: number, signal: AbortSignal): void {
    every(intervalMs, signal, () =>
      this.look(signal).catch((error) => log("error", "Health checks were not run", { error })),
    );
  }

  async look(signal: AbortSignal): Promise<void> {
    const asked = await this.asked();
    const serving = new Set(asked.map(({ target }) => target.containerId));
    this.states = new Map([...this.states].filter(([id]) => serving.has(id)));
    const nowMs = this.now();
    const due = asked.filter(({ target, check }) => {
      const { askedAtMs = -Infinity } = this.states.get(target.containerId) ?? {};
      return nowMs - askedAtMs >= (check.intervalSeconds ?? usual.intervalSeconds) * 1000 - earlyMs;
    });
    for (const { siteId, target } of due)
      this.states.set(target.containerId, {
        failures: 0,
        ...this.states.get(target.containerId),
        siteId,
        askedAtMs: nowMs,
      });
    await sideBySide(due, concurrency, (one) => this.ask(one, signal));
    this.firstAtMs ??= nowMs;
    const mayWait = this.told === null && nowMs - this.firstAtMs < unsureMs;
    if (mayWait && [...this.states.values()].some(isUnsure)) return;
    const all = this.failing();
    const told = JSON.stringify(all);
    if (told === this.told) return;
    this.told = told;
    this.means.onFailing?.(all);
  }

  /** One for each site. */
  private failing(): FailingCheck[] {
    const details = new Map<string, string>();
    for (const { siteId, failing } of this.states.values()) if (failing) details.set(siteId, failing);
    return [...details].map(([siteId, detail]) => ({ siteId: siteId as Id<"site">, detail }));
  }

  /** Running containers with a health check. */
  private async asked(): Promise<Asked[]> {
    const { engine, ingress, agentId } = this.means;
    const all = await engine.listContainers({ [label.managed]: "true", [label.agent]: agentId });
    const running = new Map(all.filter((one) => one.running).map(({ id, labels }) => [id, labels]));
    return ingress.sites().flatMap((siteId) =>
      servingOf(ingress, siteId).flatMap((target) => {
        const labels = running.get(target.containerId);
        if (!labels) return [];
        const check = healthCheckOf(labels);
        const path = healthPathOf(labels);
        return path !== null || check.kind === "tcp" ? [{ siteId, target, labels, path, check }] : [];
      }),
    );
  }

  private async ask({ siteId, target, labels, path, check }: Asked, signal: AbortSignal): Promise<void> {
    const { containerId, address, port } = target;
    const [hostname] = this.means.ingress.hostnames(siteId);
    const limitMs = (check.timeoutSeconds ?? usual.timeoutSeconds) * 1000;
    const answer = await probe({ address, port, path, hostname, check }, limitMs, signal);
    if (signal.aborted || !this.stillServes(siteId, target)) return;
    const state = this.states.get(containerId);
    if (!state) return;
    const { failures } = state;
    const what = path ?? `of port ${port}`;
    const failuresToSay = check.failures ?? usual.failures;
    const who = `version ${labels[label.deployment]}${Number(labels[label.replicas]) > 1 ? `, replica ${replicaOf(labels)}` : ""}`;
    if (answer !== true) {
      state.failures++;
      if (failures + 1 !== failuresToSay) return;
      const often = failuresToSay === 1 ? "" : `, ${failuresToSay} times in a row`;
      state.failing = `The health check ${what} of ${who} ${answer}${often}.`;
      this.say(siteId, containerId, "unhealthy", state.failing);
      return;
    }
    state.failures = 0;
    delete state.failing;
    if (failures >= failuresToSay)
      this.say(siteId, containerId, "healthy", `The health check ${what} of ${who} succeeds again.`);
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

import { maxReportedContainers, type SiteContainer, type SiteHealth } from "../../protocol/api/running.ts";
import { socketTables, parseListeners } from "../docker/listening.ts";
import type { ContainerState, ContainerSummary, Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { healthCheckOf, healthPathOf, networkName, replicaOf, siteLabels } from "../docker/specs.ts";
import { connects, probe } from "../ingress/probe.ts";
import { servingOf, type Ingress } from "../ingress/ingress.ts";

type Means = {
  engine: Pick<Engine, "listContainers" | "inspectContainer" | "ranOutOfMemory">;
  ingress: Pick<Ingress, "current" | "hostnames">;
  agentId: string;
  diskFreeMb: () => Promise<number | null>;
};

/** Together with the time to reach it, less than a question may take. */
const answerMs = 5000;
const maxListeners = 50;

/**
 * What the host knows of a site's containers at this moment; each that runs is probed from outside.
 * @param port of the site, for containers that are not in service
 */
export async function lookAtSite(
  means: Means,
  { siteId, port }: { siteId: string; port: number },
  signal: AbortSignal,
): Promise<SiteHealth> {
  const { engine, ingress, agentId } = means;
  const all = await engine.listContainers({ ...siteLabels(siteId), [label.agent]: agentId });
  const targets = new Map(servingOf(ingress, siteId).map((target) => [target.containerId, target]));
  // Those in service first: there may be many that drain.
  const shown = all
    .toSorted((a, b) => Number(targets.has(b.id)) - Number(targets.has(a.id)))
    .slice(0, maxReportedContainers);
  const current = ingress.current(siteId);
  const hostnames = [...ingress.hostnames(siteId)];
  const containers = await Promise.all(
    shown.map((one) => {
      const target = targets.get(one.id);
      const asked = { serves: target !== undefined, port: target?.port ?? port, hostname: hostnames[0] };
      return lookAt(means, one, asked, signal);
    }),
  );
  return {
    route: current === null ? "none" : current === "parked" ? "stopped" : "serving",
    hostnames,
    containers: containers.filter((one) => one !== null),
    diskFreeMb: await means.diskFreeMb(),
  };
}

type Asked = { serves: boolean; port: number; hostname: string | undefined };

/** null: it is gone. */
async function lookAt(
  { engine }: Means,
  { id, labels }: ContainerSummary,
  { serves, port, hostname }: Asked,
  signal: AbortSignal,
): Promise<SiteContainer | null> {
  const state = await engine.inspectContainer(id);
  if (!state) return null;
  const { running, startedAt, finishedAt, exitCode, restarts } = state;
  const since = startedAt ?? new Date(0);
  return {
    deploymentId: labels[label.deployment] || null,
    replica: replicaOf(labels),
    serves,
    running,
    exitCode: running || finishedAt === null ? null : exitCode,
    outOfMemory: await engine.ranOutOfMemory(state, since),
    restarts,
    startedAt: startedAt?.toISOString() ?? null,
    finishedAt: finishedAt?.toISOString() ?? null,
    listens: running ? parseListeners(...(await socketTables(state.pid))).slice(0, maxListeners) : [],
    probe: running ? await probeNow(state, { port, hostname }, signal) : null,
  };
}

async function probeNow(
  { labels, addresses }: ContainerState,
  { port, hostname }: Pick<Asked, "port" | "hostname">,
  signal: AbortSignal,
): Promise<SiteContainer["probe"]> {
  const check = healthCheckOf(labels);
  const path = healthPathOf(labels);
  const address = addresses[networkName(labels[label.account] ?? "")];
  const began = performance.now();
  const answer =
    address === undefined
      ? "has no address in its network"
      : await probe({ address, port, path, hostname, check }, answerMs, signal);
  const durationMs = Math.round(performance.now() - began);
  // As at a deployment: without a path, an app that takes connections may speak another protocol.
  const isHealthy = answer === true || (path === null && answer === connects);
  return { port, path, isHealthy, answer: answer === true ? "answers" : answer.slice(0, 500), durationMs };
}

import { setTimeout as delay } from "node:timers/promises";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { nameBeside, type ContainerState, type ContainerSummary } from "../docker/engine.ts";
import { atStartSpeed } from "../docker/start-speed.ts";
import { LogParser } from "../docker/log-parser.ts";
import { networkName, siteContainer, siteLabels, stopGraceOf, volumesOf } from "../docker/specs.ts";
import { isShutdown } from "../failure.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { servingIds, type Target } from "../ingress/ingress.ts";
import { log } from "../log.ts";
import { createContainer } from "./create-container.ts";
import { handOver } from "./hand-over.ts";
import { fallbackOf, passProbation, takeBack } from "./probation.ts";
import { exitReason, waitUntilHealthy } from "./readiness.ts";
import { readdress, targetNow } from "./readdress.ts";
import { refusalOf } from "../docker/engine-refusal.ts";
import { ensureVolumes, giveVolumes } from "./volumes.ts";
import { label } from "../docker/labels.ts";

/** Less than a job that was ended has for tidying up. */
const restoreMs = 45_000;
const restoreAgainMs = 500;
/** Of each container that did not come up. */
const lastLines = 200;

export type Released = { startMs: number; swapMs: number };

/**
 * New containers first, traffic second, old ones last: whatever fails before the swap leaves the old ones serving, and they serve
 * again where a new one exits soon after it. Only a volume that one container at a time writes to is handed over: the old one
 * stops first, and runs again when the new one fails.
 */
export function release(...what: Parameters<typeof swapTo>): Promise<Released> {
  const [, { siteId, volumes }] = what;
  const swap = () => swapTo(...what);
  return volumes.length > 0 ? handOver(siteId, swap) : swap();
}

async function swapTo(
  host: Host,
  run: RunSpec,
  deploymentId: string,
  image: string,
  name: string,
  job: JobRun,
): Promise<Released> {
  const started = performance.now();
  job.phase("start");
  await host.isolation.demand();
  job.signal.throwIfAborted();
  const made: string[] = [];
  const names: string[] = [];
  let serving: readonly string[] = [];
  let stopped: string[] = [];
  const failing = new AbortController();
  const signal = AbortSignal.any([job.signal, failing.signal]);
  try {
    await ensureVolumes(host, run);
    serving = await mayServe(host, run.siteId);
    for (let replica = 1; replica <= run.replicas; replica++) {
      const spec = siteContainer(host.agentId, run, deploymentId, image, name, replica);
      names.push(spec.name, nameBeside(spec));
      // What an attempt before this one put into service may have other settings by now, and serves on.
      const create = () => createContainer(host, run, spec, serving);
      const there = await create();
      // An earlier release of the same name may be about to go.
      const id = (await host.recall(there)) ? there : await create();
      made.push(id);
      const state = replica === 1 ? await host.engine.inspectContainer(id) : null;
      if (state) await giveVolumes(host, run, state, job);
    }
    const writers = await otherWriters(host, run, made);
    if (writers.length > 0) job.log("Stopping the version in service first: it writes to the same volume.");
    stopped = writers.map(({ id }) => id);
    await Promise.all(writers.map(({ id, labels }) => host.engine.stopContainer(id, stopGraceOf(labels))));
    job.signal.throwIfAborted();
    await Promise.all(made.map((id) => host.engine.startContainer(id)));
    job.log(
      `Waiting for ${run.healthCheck?.kind === "tcp" ? "a connection" : "an answer"} on port ${run.port}${run.healthCheckPath && run.healthCheck?.kind !== "tcp" ? ` at ${run.healthCheckPath}` : ""}${run.replicas > 1 ? ` of each of ${run.replicas} replicas` : ""}.`,
    );
    const healthy = await Promise.all(made.map((id) => healthyTarget(host, run, id, started, signal)));
    const targets = healthy.map(({ target }) => target);
    const answered = performance.now();
    job.signal.throwIfAborted();
    job.phase("swap");
    // Before it serves: a site whose visitors need a password is open at no moment.
    if (run.ingress) await host.ingress.rule(run.siteId, run.ingress, run.readAtMs);
    const isProven = servesForGood(host, run.siteId, made) || (await isServedByUs(host, run, image));
    const hostnames = host.ingress.newest(run.siteId, run);
    await host.ingress[isProven ? "route" : "routeOnProbation"](run.siteId, hostnames, targets);
    const swapped = performance.now();
    if (isProven) {
      // One may have exited, and started anew, while others were waited for.
      for (const id of made)
        await readdress(host, run.siteId, id).catch((error: unknown) =>
          log("error", "It is not known where a container of a release is", { siteId: run.siteId, error }),
        );
    } else {
      job.log(`It answers and serves; it is live after ${host.settings.probationSeconds} s without an exit.`);
      const containers = healthy.map(({ state }) => state);
      await passProbation(host, run.siteId, { containers, started }, signal);
    }
    host.retire(run.siteId, made);
    return { startMs: Math.round(answered - started), swapMs: Math.round(swapped - answered) };
  } catch (error) {
    failing.abort(error);
    const fallback = host.ingress.fallback(run.siteId);
    // It serves, and the next agent goes on with its probation.
    if (fallback && isShutdown(job.signal)) throw error;
    const lost = host.ingress.lost().includes(run.siteId);
    const now = lost ? serving : servingIds(host.ingress, run.siteId);
    const before = fallback ? fallback.map(({ containerId }) => containerId) : now;
    // Also what an attempt before this one put on probation.
    const failed = fallback ? [...made, ...now] : made;
    await restore(host, run, { before, made: failed, names, stopped }, job).catch((left: unknown) =>
      log("error", "A release that failed left something behind", { siteId: run.siteId, error: left }),
    );
    throw refusalOf(error);
  }
}

/** Files, and no program that could exit. An image of a registry may claim it, which is its owner's loss. */
const isServedByUs = async ({ engine }: Host, { startCommand }: RunSpec, image: string): Promise<boolean> =>
  startCommand === null && (await engine.imageLabels(image))[label.static] === "true";

/** An attempt before this one has put them into service, and they passed their probation. */
function servesForGood({ ingress }: Host, siteId: string, ids: readonly string[]): boolean {
  const serving = servingIds(ingress, siteId);
  return ingress.fallback(siteId) === null && ids.every((id) => serving.includes(id));
}

/** What the new containers wrote last would be gone with them, and says most about why they did not come up. */
async function sayLastWords(
  { engine }: Host,
  made: readonly string[],
  serving: readonly string[],
  job: JobRun,
): Promise<void> {
  for (const id of made.filter((one) => !serving.includes(one))) {
    const parser = new LogParser();
    const lines = parser.push(await engine.readLog(id, { tail: lastLines, since: null }));
    for (const line of [...lines, ...parser.end()]) job.print(line);
  }
}

/**
 * As it was before: what served serves again, at once where it still runs; the new containers go, then those that stopped for
 * them run again. The engine may be away for a moment, which may be what the release failed for.
 */
async function restore(
  host: Host,
  run: RunSpec,
  { before, made, names, stopped }: Record<"before" | "made" | "names" | "stopped", readonly string[]>,
  job: JobRun,
): Promise<void> {
  const { siteId } = run;
  const { ingress } = host;
  const began = performance.now();
  const patiently = async (work: () => Promise<void>): Promise<void> => {
    for (;;)
      try {
        return await work();
      } catch (error) {
        if (performance.now() - began > restoreMs) throw error;
        await delay(restoreAgainMs);
      }
  };
  await patiently(async () => {
    if (ingress.fallback(siteId) === null) return;
    if ((await fallbackOf(host, siteId)).every(({ running }) => running)) await takeBack(host, siteId);
  });
  await sayLastWords(host, made, before, job).catch(() => undefined);
  await patiently(async () => {
    // Also one that the engine made without an answer.
    const all = (await containersOf(host, siteId)).filter(
      ({ id, name }) => made.includes(id) || names.includes(name),
    );
    for (const { id } of all) if (!before.includes(id)) await host.engine.removeContainer(id);
  });
  let ended = stopped.filter((one) => before.includes(one));
  await patiently(async () => {
    if (ingress.fallback(siteId) === null) return;
    ended = (await fallbackOf(host, siteId)).flatMap((one) => (one.running ? [] : one.target.containerId));
  });
  for (const id of ended)
    await patiently(async () => {
      await host.engine.startContainer(id);
      await readdress(host, siteId, id);
    });
  await patiently(async () => {
    if (ingress.fallback(siteId) !== null) await takeBack(host, siteId);
  });
}

/** What is in service; where that was lost, all there is. */
async function mayServe(host: Host, siteId: string): Promise<string[]> {
  if (!host.ingress.lost().includes(siteId)) return servingIds(host.ingress, siteId);
  return (await containersOf(host, siteId)).map(({ id }) => id);
}

/** @throws JobError with the reason why the container does not answer */
async function healthyTarget(
  { engine }: Host,
  run: RunSpec,
  id: string,
  started: number,
  signal: AbortSignal,
): Promise<{ target: Target; state: ContainerState }> {
  const state = await engine.inspectContainer(id);
  const address = state?.addresses[networkName(run.accountId)];
  if (!state || !address) throw new JobError(await exitReason(engine, id, state?.exitCode ?? 1, started));
  const target = targetNow({ containerId: id, address, port: run.port }, state);
  const { healthCheckPath: path, healthCheck: check = {} } = run;
  const probe = { ...target, path, hostname: run.hostnames[0], check };
  await atStartSpeed(state, () => waitUntilHealthy(engine, state, probe, run.startTimeoutSeconds, signal));
  return { target, state };
}

/**
 * The site's running containers that write to a volume of this release. Who asks for several replicas has an app that
 * several may run of at once.
 */
async function otherWriters(host: Host, run: RunSpec, made: readonly string[]): Promise<ContainerSummary[]> {
  if (run.replicas > 1 || run.volumes.length === 0) return [];
  const shared = ({ labels }: ContainerSummary) =>
    volumesOf(labels).some((name) => run.volumes.some((volume) => volume.name === name));
  const all = await containersOf(host, run.siteId);
  return all.filter((one) => one.running && !made.includes(one.id) && shared(one));
}

export const containersOf = (host: Host, siteId: string) =>
  host.engine.listContainers({ ...siteLabels(siteId), [label.agent]: host.agentId });

/** The image of a deployment this host has built, by its id. @throws JobError when it is gone */
export async function imageOf(host: Host, siteId: string, deploymentId: string): Promise<string> {
  const imageId = await host.engine.imageId(`${host.imageRepository(siteId)}:${deploymentId}`);
  if (imageId === null)
    throw new JobError("The image of this version is no longer on the host: deploy the site again.");
  return imageId;
}

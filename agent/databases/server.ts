import { setTimeout as delay } from "node:timers/promises";
import tar from "tar-stream";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { ensureImage } from "../image-build/ensure-image.ts";
import { startedAgainAt } from "../docker/engine.ts";
import { atStartSpeed } from "../docker/start-speed.ts";
import type { Host } from "../host.ts";
import { JobError } from "../job.ts";
import { isAside } from "../docker/aside.ts";
import { onAccountNetwork } from "../isolation/account-network.ts";
import { diskIsFull, saysDiskFull } from "../docker/disk-full.ts";
import { databaseContainer } from "./container.ts";
import {
  containerName,
  databaseLabels,
  stopGraceSeconds,
  volumeLabels,
  volumeName,
} from "../docker/database-objects.ts";
import { DataGone, demandData, demandVolume, markData, permitBeginning } from "./data.ts";
import { removeEmptyLock } from "./postgresql/empty-lock.ts";
import { exposeStarted, giveCertificate } from "./server-certificate.ts";
import { engines } from "./index.ts";
import { run } from "./run-program.ts";
import { label } from "../docker/labels.ts";

export { run };

const pauseMs = 250;
const shownLines = 10;

/**
 * Starts the database's server on its existing data and waits until it accepts connections with the spec's logins.
 * @param isFirst it may start without data. @throws DataGone if it may not and there is none
 */
export async function bringUp(
  host: Host,
  spec: DatabaseSpec,
  signal: AbortSignal,
  isFirst = false,
): Promise<{ version: string }> {
  const engine = engines[spec.type];
  await host.isolation.demand();
  await ensureImage(host, spec.image, signal);
  if (isFirst)
    await host.engine.ensureVolume(
      volumeName(spec.databaseId, spec.volume),
      databaseLabels(host.agentId, spec.databaseId, spec.accountId),
    );
  else await demandVolume(host, spec);
  signal.throwIfAborted();
  const id = await ensureContainer(host, spec, isFirst);
  await untilReady(host, id, spec, signal);
  await arrange(host, spec, signal);
  await exposeStarted(host, spec);
  const version = await engine.version(spec, (program) => run(host, id, program, signal));
  await markData(host, id, spec);
  return { version: /^[\w.]+/.exec(version.trim())?.[0] ?? "unknown" };
}

/** Removes all of the database's data. */
export async function removeVolumes(host: Host, databaseId: string): Promise<void> {
  for (const { name } of await host.engine.volumes(volumeLabels(host.agentId, databaseId)))
    await host.engine.removeVolume(name);
}

/** Changes a running server's logins to those of the spec. @throws JobError if it does not run */
export async function arrange(host: Host, spec: DatabaseSpec, signal: AbortSignal): Promise<void> {
  const found = await host.engine.inspectContainer(containerName(spec.databaseId));
  if (!found?.running) throw new JobError("The database is not running: start it, then try again.");
  try {
    await engines[spec.type].arrange(spec, (program) => run(host, found.id, program, signal));
  } catch (error) {
    signal.throwIfAborted();
    throw new JobError("The database's logins could not be set: try again, or restart the database first.", {
      cause: error,
    });
  }
}

/** Stops the server cleanly. The container is removed as well: an existing one is meant to run, or was set aside. */
export async function takeDown(host: Host, databaseId: string): Promise<void> {
  for (const one of await host.engine.listContainers({ ...volumeLabels(host.agentId, databaseId) }))
    if (isAside(one)) await host.engine.removeContainer(one.id);
  const found = await host.engine.inspectContainer(containerName(databaseId));
  if (!found) return;
  await host.engine.stopContainer(found.id, stopGraceSeconds);
  await host.engine.removeContainer(found.id);
  if (host.publicAccess.has(databaseId)) await host.isolation.refresh();
}

/** Two servers must never use one volume, and a server is always given time to write before its removal. */
async function ensureContainer(host: Host, spec: DatabaseSpec, isFirst: boolean): Promise<string> {
  const containerOn = async (network: string) =>
    databaseContainer(host.agentId, spec, await host.engine.subnet(network));
  const wanted = await onAccountNetwork(host, spec.accountId, containerOn);
  const found = await host.engine.inspectContainer(wanted.name);
  const isKept = found?.labels[label.config] === wanted.Labels[label.config];
  if (!isKept) await takeDown(host, spec.databaseId);
  // Built again: an unused network may have been recreated with another subnet meanwhile.
  const id = await onAccountNetwork(host, spec.accountId, async (network) =>
    host.engine.createContainer(await containerOn(network)),
  );
  const engine = engines[spec.type];
  const isNew = !(isKept && found?.running);
  if (isNew && !isFirst)
    await demandData(host, id, spec).catch(async (error: unknown) => {
      if (error instanceof DataGone) await host.engine.removeContainer(id);
      throw error;
    });
  if (isNew && isFirst) await permitBeginning(host, id, true);
  if (isNew) await giveCertificate(host, id, spec);
  if (engine.file && isNew) {
    const { name, text } = engine.file(spec);
    const archive = tar.pack();
    archive.entry({ name, mode: 0o644 }, text);
    archive.finalize();
    try {
      await host.engine.writeFiles(id, engine.dataPath, archive);
    } catch (error) {
      throw saysDiskFull([String(error)])
        ? new JobError(diskIsFull("start it again"), { cause: error })
        : error;
    }
  }
  if (isNew) await removeEmptyLock(host.engine, wanted.Labels);
  await host.engine.startContainer(id);
  return id;
}

/** @throws JobError with the server's last output if it ends instead */
export async function untilReady(
  host: Host,
  id: string,
  spec: DatabaseSpec,
  signal: AbortSignal,
): Promise<void> {
  const { ready } = engines[spec.type];
  const found = () => host.engine.inspectContainer(id);
  const gone = async (lackedMemory: boolean) => new JobError(await lastWords(host, id, lackedMemory));
  const begun = await found();
  if (!begun) throw await gone(false);
  await atStartSpeed(begun, async () => {
    for (;;) {
      signal.throwIfAborted();
      const state = await found();
      if (!state) throw await gone(false);
      if (!state.running || state.restarts !== begun.restarts)
        throw await gone(await host.engine.ranOutOfMemory(state, begun.startedAt ?? new Date()));
      // The server may end at any moment, and then the program cannot run.
      const answer = await host.engine.execute(id, ready.program(spec), signal).catch(() => null);
      if (answer?.exitCode === 0 && answer.stdout.includes(ready.says ?? "")) return;
      await delay(pauseMs, undefined, { signal });
    }
  });
}

async function lastWords(host: Host, id: string, lackedMemory: boolean): Promise<string> {
  if (lackedMemory)
    return "The database needed more memory than its pack has when it started: choose a larger pack.";
  // The lines of another start would hide why this one ended.
  const again = await host.engine.inspectContainer(id);
  const lines = await host.engine.lastLines(id, shownLines, startedAgainAt(again));
  const full = saysDiskFull(lines) ? ` ${diskIsFull("start it again")}` : "";
  return `The database server ended when it started.${full} Its last lines: ${lines.join(" | ").slice(-1500)}`;
}

import type { JobArgs } from "../../protocol/agent/jobs.ts";
import { commandContainer, releaseCommandId, releaseLabel } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import { JobError, type JobRun } from "../job.ts";
import { attendCommand, removeAfterwards } from "./command.ts";
import { createContainer } from "./create-container.ts";
import { ensureVolumes } from "./volumes.ts";

/**
 * Runs what the image is to run once before it serves, as a command's container. It stays until the deployment's result is
 * journaled: another attempt goes on with it, or goes by how it ended. @returns the milliseconds that it took; null: there is
 * none. @throws JobError when it fails
 */
export async function runReleaseCommand(
  host: Host,
  { run, deploymentId, source, release }: JobArgs<"site.deploy">,
  imageId: string,
  job: JobRun,
): Promise<number | null> {
  if (!release) return null;
  // An image of a registry may have any labels.
  const command =
    release.command ?? (source.type !== "image" && (await host.engine.imageLabels(imageId))[releaseLabel]);
  if (!command) return null;
  job.hasRunCommand = true;
  const startedMs = performance.now();
  const { timeoutSeconds } = release;
  job.phase("start");
  await ensureVolumes(host, run);
  job.signal.throwIfAborted();
  const commandId = releaseCommandId(deploymentId);
  const args = { run, deploymentId, commandId, command, timeoutSeconds };
  const container = commandContainer(host.agentId, args, job, imageId);
  removeAfterwards(host.engine, container.name, job);
  const id = await createContainer(host, run, container);
  const wasBegun = ((await host.engine.inspectContainer(id))?.startedAt ?? null) !== null;
  job.log(`${wasBegun ? "Continuing" : "Running"} the release command: ${command}`);
  const { exitCode, error } = await attendCommand(host, id, job);
  if (exitCode === null)
    throw new JobError(
      `The release command did not end within ${timeoutSeconds} seconds and was stopped: make it shorter, or run long tasks with POST /sites/:id/commands.`,
    );
  if (error !== null) throw new JobError(`The release command failed: ${error}`);
  job.log("The release command has succeeded.");
  return Math.round(performance.now() - startedMs);
}

/** Before the image of a deployment that failed can go. */
export const removeReleaseCommand = (host: Host, deploymentId: string): Promise<void> =>
  host.engine.removeContainer(`berth-${releaseCommandId(deploymentId)}`);

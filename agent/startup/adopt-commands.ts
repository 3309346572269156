import { idPattern, type Id } from "../../protocol/ids.ts";
import type { ContainerSummary } from "../docker/engine.ts";
import { secretsIn } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Journal } from "../journal.ts";
import { log } from "../log.ts";
import type { Runner } from "../runner.ts";
import { goOnWithCommand } from "../sites/command.ts";
import { label } from "../docker/labels.ts";

/**
 * Adopts running commands that a previous agent started, before the control plane is sent the list of running jobs.
 * Removes those that were reported, have no lease or never started.
 */
export async function adoptCommands(host: Host, journal: Journal, runner: Runner): Promise<void> {
  const reported = new Set<string>(journal.unacknowledged().map(({ jobId }) => jobId));
  for (const found of await host.engine.listContainers({ [label.agent]: host.agentId })) {
    const { [label.command]: commandId = "" } = found.labels;
    // An image's own labels are untrusted; names are given only by agents.
    if (!idPattern("command").test(commandId) || found.name !== `berth-${commandId}`) continue;
    await adopt(host, runner, found, reported).catch((error) =>
      log("error", "A command was not adopted", { commandId, error }),
    );
  }
}

async function adopt(
  host: Host,
  runner: Runner,
  { id, labels }: ContainerSummary,
  reported: ReadonlySet<string>,
): Promise<void> {
  const { [label.command]: commandId = "", [label.job]: jobId = "" } = labels;
  const container = await host.engine.inspectContainer(id);
  if (!container) return;
  // A command that never started may have been reported as failed; as long as it is not claimed, it has.
  if (reported.has(jobId) || container.startedAt === null) return host.engine.removeContainer(id);
  log("info", "Adopting a command", { commandId, isRunning: container.running });
  runner.adopt({
    jobId: jobId as Id<"job">,
    attempt: Number(labels[label.attempt]),
    commandId: commandId as Id<"command">,
    secrets: secretsIn(container),
    handle: (job) => goOnWithCommand(host, id, job),
  });
}

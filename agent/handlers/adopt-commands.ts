import { idPattern, type Id } from "../../protocol/ids.ts";
import { secretsIn } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Journal } from "../journal.ts";
import { log } from "../log.ts";
import type { Runner } from "../runner.ts";
import { attendCommand } from "./run-command.ts";

/**
 * Commands that an agent before this one began go on as this one's work, before the control plane hears what that is. What
 * has been reported, or is of no lease, goes.
 */
export async function adoptCommands(host: Host, journal: Journal, runner: Runner): Promise<void> {
  const reported = new Set<string>(journal.unacknowledged().map(({ jobId }) => jobId));
  for (const { id, name, labels } of await host.engine.listContainers({ "berth.agent": host.agentId })) {
    const { "berth.command": commandId = "", "berth.job": jobId = "" } = labels;
    // An image's own labels may say anything; names are given by agents only.
    if (!idPattern("command").test(commandId) || name !== `berth-${commandId}`) continue;
    const container = await host.engine.inspectContainer(id);
    if (!container) continue;
    if (reported.has(jobId)) await host.engine.removeContainer(id);
    else {
      log("info", "Going on with a command", { commandId, isRunning: container.running });
      runner.adopt({
        jobId: jobId as Id<"job">,
        attempt: Number(labels["berth.attempt"]),
        commandId: commandId as Id<"command">,
        secrets: secretsIn(container),
        handle: (job) => attendCommand(host, id, job),
      });
    }
  }
}

import { idPattern, type Id } from "../../protocol/ids.ts";
import { secretsIn } from "../docker/specs.ts";
import type { Host } from "../host.ts";
import type { Journal } from "../journal.ts";
import type { Runner } from "../runner.ts";
import { attendCommand } from "./run-command.ts";

/**
 * Commands that an agent before this one began go on as this one's work, before the control plane hears what that is. What
 * has been reported, or is of no lease, goes.
 */
export async function adoptCommands(host: Host, journal: Journal, runner: Runner): Promise<void> {
  const reported = new Set<string>(journal.unacknowledged().map(({ jobId }) => jobId));
  for (const { id, labels } of await host.engine.listContainers({ "berth.agent": host.agentId })) {
    const { "berth.command": commandId = "", "berth.job": jobId = "" } = labels;
    if (labels["berth.command"] === undefined) continue;
    const container = await host.engine.inspectContainer(id);
    if (!container) continue;
    const isKnown = idPattern("command").test(commandId) && idPattern("job").test(jobId);
    if (!isKnown || reported.has(jobId)) await host.engine.removeContainer(id);
    else
      runner.adopt({
        jobId: jobId as Id<"job">,
        attempt: Number(labels["berth.attempt"]),
        commandId: commandId as Id<"command">,
        secrets: secretsIn(container),
        handle: (job) => attendCommand(host, id, job),
      });
  }
}

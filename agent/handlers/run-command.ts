import { commandContainer } from "../docker/specs.ts";
import { attendCommand, removeAfterwards } from "../sites/command.ts";
import { createContainer } from "../sites/create-container.ts";
import { imageOf } from "../sites/rollout.ts";
import { ensureVolumes } from "../sites/volumes.ts";
import type { Handler } from "./handler.ts";

/** Runs in its own container, which outlives the agent: the next agent adopts it. */
export const runCommand: Handler<"site.command"> = async (host, args, job) => {
  const { run, deploymentId } = args;
  const image = await imageOf(host, run.siteId, deploymentId);
  await ensureVolumes(host, run);
  job.signal.throwIfAborted();
  const container = commandContainer(host.agentId, args, job, image);
  // By its name: the engine may create the container without an answer.
  removeAfterwards(host.engine, container.name, job);
  return attendCommand(host, await createContainer(host, run, container), job);
};

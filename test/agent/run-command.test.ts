import { expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { runCommand } from "../../agent/handlers/run-command.ts";
import type { Host } from "../../agent/host.ts";
import { formatId } from "../../protocol/ids.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";

const commandId = formatId("command", 1, new Uint8Array(10));
const deploymentId = formatId("deployment", 1, new Uint8Array(10));

it("a command's container goes, also where the engine made it without an answer and was away for a moment after", async () => {
  const containers: string[] = [];
  let refusals = 2;
  const engine = {
    imageId: () => Promise.resolve("image"),
    ensureNetwork: () => Promise.resolve(),
    createContainer: ({ name }: { name: string }) => {
      containers.push(name);
      return Promise.reject(new Error("socket hang up"));
    },
    removeContainer: (idOrName: string) =>
      refusals-- > 0
        ? Promise.reject(new Error("connect ECONNREFUSED"))
        : Promise.resolve(void containers.splice(containers.indexOf(idOrName), 1)),
  } as unknown as Engine;
  const host = { agentId: "agent", engine, imageRepository: () => "berth-site/a" } as unknown as Host;
  const afterwards: (() => Promise<void>)[] = [];
  const job = jobRun({ afterwards: (work) => void afterwards.push(work) });
  const args = { run: runSpec(), deploymentId, commandId, command: "true", timeoutSeconds: 60 };
  await expect(runCommand(host, args, job)).rejects.toThrow("socket hang up");
  expect(containers).toEqual([`berth-${commandId}`]);
  for (const work of afterwards) await work();
  expect(containers).toEqual([]);
});

import { setTimeout as delay } from "node:timers/promises";
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

it("a command has all of its time though the engine's clock is an hour behind the agent's", async () => {
  const state = { id: "c", running: false, startedAt: null as Date | null, finishedAt: null as Date | null };
  const rest = { exitCode: 0, oomKilled: false, labels: { "berth.timeout": "60" } };
  const engine = {
    imageId: () => Promise.resolve("image"),
    ensureNetwork: () => Promise.resolve(),
    createContainer: () => Promise.resolve("c"),
    inspectContainer: () => Promise.resolve({ ...state, ...rest }),
    startContainer: async () =>
      void Object.assign(state, { running: true, startedAt: new Date(Date.now() - 3_600_000) }),
    stopContainer: () => Promise.resolve(),
    waitForExit: async () => {
      await delay(50);
      Object.assign(state, { running: false, finishedAt: new Date(Date.now() - 3_600_000) });
    },
    followLog: () => [],
  } as unknown as Engine;
  const isolation = { demand: () => Promise.resolve() };
  const host = {
    agentId: "agent",
    engine,
    isolation,
    imageRepository: () => "berth-site/a",
  } as unknown as Host;
  const args = { run: runSpec(), deploymentId, commandId, command: "true", timeoutSeconds: 60 };
  expect(await runCommand(host, args, jobRun({ afterwards: () => undefined }))).toEqual({
    exitCode: 0,
    error: null,
  });
});

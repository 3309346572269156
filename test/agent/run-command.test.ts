import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { runCommand } from "../../agent/handlers/run-command.ts";
import type { Host } from "../../agent/host.ts";
import { formatId } from "../../protocol/ids.ts";
import { jobRun } from "../support/job-run.ts";
import { runSpec } from "../support/run-spec.ts";
import { emptyDisk } from "../support/empty-disk.ts";

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
  const buildRoom = emptyDisk();
  const host = {
    agentId: "agent",
    engine,
    buildRoom,
    imageRepository: () => "berth-site/a",
  } as unknown as Host;
  const afterwards: (() => Promise<void>)[] = [];
  const job = jobRun({ afterwards: (work) => void afterwards.push(work) });
  await expect(runCommand(host, args, job)).rejects.toThrow("socket hang up");
  expect(containers).toEqual([`berth-${commandId}`]);
  for (const work of afterwards) await work();
  expect(containers).toEqual([]);
});

/** A host on which a command runs in a container of this state, and the engine does as it is told. */
function hostOf(state: object, does: Partial<Record<keyof Engine, (...args: never[]) => unknown>>): Host {
  const rest = { id: "c", exitCode: 0, oomKilled: false, labels: { "berth.timeout": "60" } };
  Object.assign(state, { ...rest, ...state });
  const engine = {
    imageId: () => Promise.resolve("image"),
    ensureNetwork: () => Promise.resolve(),
    createContainer: () => Promise.resolve("c"),
    inspectContainer: () => Promise.resolve({ ...state }),
    startContainer: async () => void Object.assign(state, { running: true, startedAt: new Date() }),
    stopContainer: () => Promise.resolve(),
    followLog: () => [],
    ...does,
  };
  const isolation = { demand: () => Promise.resolve() };
  const imageRepository = () => "berth-site/a";
  return { agentId: "agent", engine, isolation, buildRoom: emptyDisk(), imageRepository } as unknown as Host;
}
const args = { run: runSpec(), deploymentId, commandId, command: "true", timeoutSeconds: 60 };
const notBegun = { running: false, startedAt: null as Date | null, finishedAt: null as Date | null };

/** The last answer of an engine that ends: that it does not know, that the container has ended, and how. */
const lastAnswers = ["none", "of the wait", "of the container's state"] as const;

it.each(lastAnswers.flatMap((last) => [143, 137, 1].map((exitCode) => [exitCode, last] as const)))(
  "a command that ends with %i as its engine does was interrupted if by a signal, whatever the last answer is: %s",
  async (exitCode, last) => {
    const state = { ...notBegun, exitCode: 0 };
    let asked = 0;
    const isAway = () => {
      // To who waits for its end, and to who follows its log.
      const answersOfState = last === "of the container's state" ? 2 : 0;
      return ++asked > answersOfState && asked < answersOfState + 2;
    };
    const host = hostOf(state, {
      async waitForExit() {
        Object.assign(state, { running: false, finishedAt: new Date(), exitCode });
        if (last === "none") throw new Error("socket hang up");
      },
      inspectContainer: () =>
        !state.running && state.startedAt !== null && isAway()
          ? Promise.reject(new Error("connect ECONNREFUSED"))
          : Promise.resolve({ ...state }),
    });
    const ran = runCommand(host, args, jobRun({ afterwards: () => undefined }));
    if (exitCode === 1)
      expect(await ran).toMatchObject({ exitCode, error: expect.stringMatching(/^exited with 1:/) });
    else await expect(ran).rejects.toThrow(/^The host was interrupted while this ran/);
  },
);

it("a command whose time ends while its engine is away is stopped once that is back", async () => {
  const state = { ...notBegun, labels: { "berth.timeout": "0" } };
  const ended = Promise.withResolvers<void>();
  let absences = 2;
  const host = hostOf(state, {
    async stopContainer() {
      if (absences-- > 0) throw new Error("connect ECONNREFUSED");
      Object.assign(state, { running: false, finishedAt: new Date(), exitCode: 137 });
      ended.resolve();
    },
    waitForExit: () => ended.promise,
  });
  expect(await runCommand(host, args, jobRun({ afterwards: () => undefined }))).toMatchObject({
    exitCode: null,
    error: expect.stringMatching(/^It did not end within/),
  });
});

it("a command has all of its time though the engine's clock is an hour behind the agent's", async () => {
  const state = { ...notBegun };
  const host = hostOf(state, {
    startContainer: async () =>
      void Object.assign(state, { running: true, startedAt: new Date(Date.now() - 3_600_000) }),
    async waitForExit() {
      await delay(50);
      Object.assign(state, { running: false, finishedAt: new Date(Date.now() - 3_600_000) });
    },
  });
  expect(await runCommand(host, args, jobRun({ afterwards: () => undefined }))).toEqual({
    exitCode: 0,
    error: null,
  });
});

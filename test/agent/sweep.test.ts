import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { databaseLabels } from "../../agent/docker/database-objects.ts";
import { commandContainer, networkName, releaseCommandId, siteContainer } from "../../agent/docker/specs.ts";
import { adoptCommands } from "../../agent/startup/adopt-commands.ts";
import { handOver } from "../../agent/sites/hand-over.ts";
import { reviveServing, sweep } from "../../agent/startup/sweep.ts";
import { openReaddressing } from "../../agent/sites/readdress.ts";
import type { Host } from "../../agent/host.ts";
import type { Target } from "../../agent/ingress/ingress.ts";
import type { Journal } from "../../agent/journal.ts";
import type { Adopted, Runner } from "../../agent/runner.ts";
import { formatId } from "../../protocol/ids.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const siteId = formatId("site", 1, new Uint8Array(10));
const databaseId = formatId("database", 1, new Uint8Array(10));
const commandId = formatId("command", 1, new Uint8Array(10));
const accountId = formatId("account", 1, new Uint8Array(10));
const deploymentId = formatId("deployment", 1, new Uint8Array(10));
const run = runSpec();
const ofSite = () => siteContainer("agent", run, deploymentId, "image", "").Labels;
const ofCommand = () =>
  commandContainer(
    "agent",
    { run, deploymentId, commandId, command: "true", timeoutSeconds: 60 },
    { jobId: "job", attempt: 1 },
    "image",
  ).Labels;

/** `listed`: what the engine's list says instead. */
type Container = { id: string; labels: Record<string, string>; running: boolean; listed?: boolean };
let workDirectory: string;
/** Of the volume `data`. */
let dataFolder: string;
beforeEach(() => {
  workDirectory = temporaryFolder();
  dataFolder = temporaryFolder();
});

/** Sweeps a host of these containers, of which `serving` is in service. The engine refuses to start or remove some. */
async function swept(
  containers: Container[],
  serving: string | null = null,
  refused: string[] = [],
  work: (host: Host) => Promise<void> = sweep,
  lost: string[] = [],
) {
  const done = {
    executed: [] as string[],
    removed: [] as string[],
    started: [] as string[],
    stopped: [] as string[],
  };
  const note = (list: string[]) => (id: string) =>
    refused.includes(id)
      ? Promise.reject(new Error("unable to find user app: no matching entries in passwd file"))
      : Promise.resolve(void list.push(id));
  const target = { containerId: serving ?? "", address: "10.0.0.2", port: 3000 };
  const host = {
    workDirectory,
    agentId: "agent",
    ingress: {
      sites: () => (serving === null ? [] : [siteId]),
      current: () => (serving === null || serving === "parked" ? serving : [target]),
      lost: () => lost,
      fallback: () => null,
      readdress: () => Promise.resolve(),
    },
    goOnRetiring: () => null,
    engine: {
      inspectContainer: (id: string) =>
        Promise.resolve({ ...containers.find((one) => one.id === id), labels: {}, addresses: {} }),
      listContainers: () =>
        Promise.resolve(containers.map(({ listed, ...one }) => ({ ...one, running: listed ?? one.running }))),
      volumes: () => Promise.resolve([{ name: "data", labels: {}, folder: dataFolder }]),
      execute: (id: string) => {
        done.executed.push(id);
        return Promise.resolve({ exitCode: 0, stdout: "", stderr: "" });
      },
      startContainer: note(done.started),
      stopContainer: note(done.stopped),
      resumeContainer: () => Promise.resolve(),
      removeContainer: note(done.removed),
      removeUnnamed: note(done.removed),
    },
  };
  await work(host as unknown as Host);
  return done;
}

describe("an agent that starts", () => {
  it("removes what the last one would have removed from the engine, once no container has it", async () => {
    const note = { kind: "unnamed image", id: "sha256:private" };
    writeFileSync(join(workDirectory, "a.left-over.json"), JSON.stringify(note));
    writeFileSync(join(workDirectory, "b.left-over.json"), "{");
    const copy = { ...ofSite(), "berth.copy": deploymentId };
    const { removed } = await swept([{ id: "copy", labels: copy, running: false }]);
    expect(removed).toEqual(["copy", "sha256:private"]);
    expect(readdirSync(workDirectory)).toEqual(["b.left-over.json"]);
  });

  it("runs a program in its databases' containers only, never in a tenant's", async () => {
    const labels = databaseLabels("agent", databaseId, accountId);
    const { executed, removed } = await swept(
      [
        { id: "site", labels: ofSite(), running: true },
        { id: "command", labels: ofCommand(), running: true },
        { id: "database", labels, running: true },
      ],
      "site",
    );
    expect(executed).toEqual(["database"]);
    expect(removed).toEqual([]);
  });

  it("takes up its work though a tenant's container can no longer be started, or not be removed", async () => {
    const labels = databaseLabels("agent", databaseId, accountId);
    const { removed, started } = await swept(
      [
        { id: "site", labels: ofSite(), running: false },
        { id: "left", labels: ofSite(), running: false },
        { id: "older", labels: ofSite(), running: false },
        { id: "database", labels, running: false },
      ],
      "site",
      ["site", "left"],
    );
    expect({ removed, started }).toEqual({ removed: ["older"], started: ["database"] });
  });

  it("starts a database that has just ended, though its engine still lists it as one that runs", async () => {
    const labels = databaseLabels("agent", databaseId, accountId);
    const ended = { id: "database", labels, running: false, listed: true };
    expect(await swept([ended])).toMatchObject({ started: ["database"] });
  });

  it("begins no database anew in a volume that was emptied, nor where there is none: that is for a job to say", async () => {
    const on = (volume: string) => ({
      ...databaseLabels("agent", databaseId, accountId),
      "berth.volume": volume,
    });
    const revived = async (volume: string, work?: typeof sweep) =>
      (await swept([{ id: "database", labels: on(volume), running: false }], null, [], work)).started;
    for (const work of [sweep, (host: Host) => reviveServing(host, new Set())]) {
      expect(await revived("data", work)).toEqual([]);
      expect(await revived("gone", work)).toEqual([]);
    }
    writeFileSync(join(dataFolder, "PG_VERSION"), "17");
    expect(await revived("data")).toEqual(["database"]);
  });

  it("stops what it finds running of a stopped site, such as a version of which the agent before it made no end", async () => {
    const { removed, stopped } = await swept(
      [
        { id: "stopped", labels: ofSite(), running: false },
        { id: "left", labels: ofSite(), running: true },
      ],
      "parked",
    );
    expect({ removed, stopped }).toEqual({ removed: [], stopped: ["left"] });
  });

  it("that lost what serves a site leaves all of its containers as they are", async () => {
    const containers = [
      { id: "serves", labels: ofSite(), running: true },
      { id: "stopped", labels: ofSite(), running: false },
    ];
    const done = await swept(containers, null, [], sweep, [siteId]);
    expect(done).toEqual({ executed: [], removed: [], started: [], stopped: [] });
    expect((await swept(containers)).removed).toEqual(["stopped"]);
  });

  it("removes nothing that runs, whatever the table of its ingress says: that may be an older one, or wrong", async () => {
    const containers = [
      { id: "serves", labels: ofSite(), running: true },
      { id: "ended", labels: ofSite(), running: false },
    ];
    for (const table of [null, "of an older version"])
      expect(await swept(containers, table)).toMatchObject({ removed: ["ended"], stopped: [] });
  });

  it("stops what was half made where it writes to the volume of what serves, and keeps it", async () => {
    const withVolume = runSpec({ volumes: [{ name: "data", mountPath: "/data" }] });
    const { Labels: labels } = siteContainer("agent", withVolume, deploymentId, "image", "");
    const half = { id: "half", labels, running: true };
    const serving = { id: "site", labels, running: true };
    expect(await swept([serving, half], "site")).toMatchObject({ removed: [], stopped: ["half"] });
    // It may be the one that serves, where the table is an older one.
    expect(await swept([half], "site")).toMatchObject({ removed: [], stopped: [] });
  });
});

it("an agent that starts tells the ingress the addresses of all sites in one change, before it does anything else", async () => {
  const told: string[][] = [];
  const addresses = new Map<string, string>();
  const host = {
    workDirectory: join(workDirectory, "gone"),
    ingress: {
      sites: () => ["one", "hangs", "fails", "starts anew", "two"],
      current: (containerId: string) => [
        { containerId, address: addresses.get(containerId) ?? "10.0.0.2", port: 3000 },
      ],
      fallback: () => null,
      readdress: (targets: Target[]) =>
        Promise.resolve(void told.push(targets.map(({ address }) => address))),
    },
    engine: {
      async inspectContainer(id: string) {
        if (id === "fails") throw new Error("The engine is busy");
        if (id === "hangs") await new Promise(() => undefined);
        // As its start says, by itself.
        if (id === "starts anew") addresses.set(id, "10.0.0.3");
        return Promise.resolve({ labels: {}, running: true, addresses: { [networkName("")]: `of ${id}` } });
      },
    },
  } as unknown as Host;
  await expect(sweep(host)).rejects.toThrow(/ENOENT/);
  expect(told).toEqual([["of one", "of two"]]);
});

describe("an agent whose engine is there again", () => {
  const labels = databaseLabels("agent", databaseId, accountId);
  const containers = [
    { id: "site", labels: ofSite(), running: false },
    { id: "being made", labels: ofSite(), running: false },
    { id: "command", labels: ofCommand(), running: false },
    { id: "database", labels, running: false },
  ];

  it("starts what serves and ended with it, and leaves what jobs are about", async () => {
    const done = await swept(containers, "site", [], (host) => reviveServing(host, new Set()));
    expect(done).toEqual({ executed: [], removed: [], started: ["site", "database"], stopped: [] });
  });

  it("starts it also while the ingress does not answer", async () => {
    const done = await swept(containers, "site", [], (host) => {
      host.ingress.readdress = () => Promise.reject(new Error("The responder does not answer"));
      return reviveServing(host, new Set());
    });
    expect(done.started).toEqual(["site", "database"]);
  });

  it("starts neither a database that is out nor a version that hands over its volume", async () => {
    const done = await swept(containers, "site", [], (host) =>
      handOver(siteId, () => reviveServing(host, new Set([databaseId]))),
    );
    expect(done).toEqual({ executed: [], removed: [], started: [], stopped: [] });
  });
});

it("a container of which the engine never answers does not keep another one that started anew from being reached", async () => {
  const answers = new Map([["hangs", Promise.withResolvers<void>()]]);
  const addresses: string[] = [];
  const host = {
    ingress: {
      current: (containerId: string) => [{ containerId, address: "10.0.0.2", port: 3000 }],
      fallback: () => null,
      readdress: ([target]: Target[]) => Promise.resolve(void addresses.push(target?.address ?? "")),
    },
    engine: {
      async inspectContainer(id: string) {
        await answers.get(id)?.promise;
        return { labels: {}, running: true, addresses: { [networkName("")]: `of ${id}` } };
      },
    },
  } as unknown as Host;
  const readdress = openReaddressing(host, new AbortController().signal);
  for (const id of ["hangs", "one", "hangs", "two"]) readdress(id, id);
  await vi.waitUntil(() => addresses.length > 1, 10_000);
  expect(addresses).toEqual(["of one", "of two"]);
  answers.get("hangs")?.resolve();
  await vi.waitUntil(() => addresses.length > 3, 10_000);
});

it("an agent that starts goes on with commands though one of their containers cannot be removed", async () => {
  const container = (n: number, jobId: string) => ({
    id: `c${n}`,
    name: `berth-${formatId("command", n, new Uint8Array(10))}`,
    labels: { "berth.command": formatId("command", n, new Uint8Array(10)), "berth.job": jobId },
    env: [],
  });
  const engine = {
    listContainers: () => Promise.resolve([container(1, "reported"), container(2, "open")]),
    inspectContainer: (id: string) =>
      Promise.resolve({ ...container(Number(id.slice(1)), ""), startedAt: new Date() }),
    removeContainer: () => Promise.reject(new Error("device or resource busy")),
  };
  const adopted: string[] = [];
  await adoptCommands(
    { agentId: "agent", engine } as unknown as Host,
    { unacknowledged: () => [{ jobId: "reported" }] } as unknown as Journal,
    { adopt: ({ jobId }: Adopted) => adopted.push(jobId) } as unknown as Runner,
  );
  expect(adopted).toEqual(["open"]);
});

it("an agent that starts does not begin a command that the one before it made and did not start: it may have been said to have failed", async () => {
  const found = { id: "c", name: `berth-${commandId}`, labels: ofCommand(), env: [], startedAt: null };
  const removed: string[] = [];
  const engine = {
    listContainers: () => Promise.resolve([found]),
    inspectContainer: () => Promise.resolve(found),
    removeContainer: (id: string) => Promise.resolve(void removed.push(id)),
  };
  await adoptCommands(
    { agentId: "agent", engine } as unknown as Host,
    { unacknowledged: () => [] } as unknown as Journal,
    { adopt: () => expect.fail("it is gone on with") } as unknown as Runner,
  );
  expect(removed).toEqual(["c"]);
});

it("a work folder that cannot be removed, such as a mount, keeps no agent from starting, and no other from being removed", async () => {
  for (const name of ["a", "held", "z"]) mkdirSync(join(workDirectory, name));
  const programs = temporaryFolder();
  const rm = `#!/bin/sh\ncase "$*" in *held) echo "Device or resource busy" >&2; exit 1 ;; esac\nexec /bin/rm "$@"\n`;
  writeFileSync(join(programs, "rm"), rm, { mode: 0o755 });
  vi.stubEnv("PATH", `${programs}:${process.env["PATH"]}`);
  try {
    expect((await swept([{ id: "c", labels: ofSite(), running: false }])).removed).toEqual(["c"]);
  } finally {
    vi.unstubAllEnvs();
  }
  expect(readdirSync(workDirectory)).toEqual(["held"]);
});

it("a release command goes on without its agent, and for no longer than its time where no attempt comes for it", async () => {
  vi.useFakeTimers();
  try {
    const commandOf = { run, deploymentId, commandId: releaseCommandId(deploymentId), command: "true" };
    const args = { ...commandOf, timeoutSeconds: 60 };
    const { Labels: labels } = commandContainer("agent", args, { jobId: "job", attempt: 1 }, "image");
    const { removed } = await swept([{ id: "released", labels, running: true }]);
    vi.advanceTimersByTime(60_000);
    expect(removed).toEqual([]);
    vi.advanceTimersByTime(600_000);
    expect(removed).toEqual(["released"]);
  } finally {
    vi.useRealTimers();
  }
});

import { mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { limitSettings, noLimits, watchSteps } from "../../agent/isolation/build-limits.ts";
import { openBuildRoom } from "../../agent/isolation/build-room.ts";
import {
  demandDisk,
  diskAt,
  diskOf,
  floorBytes,
  fullestOf,
  tooFull,
  watchDisk,
} from "../../agent/isolation/disk.ts";
import { LogOutbox } from "../../agent/log-outbox.ts";
import { tmpdir } from "node:os";
import { temporaryFolder } from "../support/temporary-folder.ts";

const gibibyte = 1024 ** 3;
const limits = { memoryMb: 2048, cpus: 1, pids: 1024 };
const values = (version: 1 | 2) =>
  Object.fromEntries(
    limitSettings(version, limits, 2).map(({ file, value }) => [file.replace("/sys/fs/cgroup/", ""), value]),
  );

describe("the control group of builds", () => {
  it("gets its limits for every slot, and no swap", () => {
    expect(values(1)).toEqual({
      "memory/docker/buildkit/memory.limit_in_bytes": String(4 * gibibyte),
      "memory/docker/buildkit/memory.memsw.limit_in_bytes": String(4 * gibibyte),
      "cpu/docker/buildkit/cpu.cfs_period_us": "100000",
      "cpu/docker/buildkit/cpu.cfs_quota_us": "200000",
      "cpu/docker/buildkit/cpu.shares": "256",
      "pids/docker/buildkit/pids.max": "2048",
    });
    expect(values(2)).toEqual({
      "cgroup.subtree_control": "+cpu +memory +pids",
      "docker/cgroup.subtree_control": "+cpu +memory +pids",
      "docker/buildkit/memory.max": String(4 * gibibyte),
      "docker/buildkit/memory.swap.max": "0",
      "docker/buildkit/cpu.max": "200000 100000",
      "docker/buildkit/cpu.weight": "25",
      "docker/buildkit/pids.max": "2048",
    });
  });

  it("may use every core where none is limited, and yields to sites by its weight", () => {
    const of = (version: 1 | 2, name: string) =>
      limitSettings(version, { ...limits, cpus: null }, 2).find(({ file }) => file.endsWith(name))?.value;
    expect([of(1, "cpu.cfs_quota_us"), of(1, "cpu.shares")]).toEqual(["-1", "256"]);
    expect([of(2, "cpu.max"), of(2, "cpu.weight")]).toEqual(["max 100000", "25"]);
  });

  it("gets the processes of three slots at most", () => {
    const pids = limitSettings(2, limits, 16).find(({ file }) => file.endsWith("pids.max"));
    expect(pids?.value).toBe(String(3 * 1024));
  });

  it("lifts the limit of swap before that of memory falls", () => {
    const files = limitSettings(1, limits, 2).map(({ file, value }) => `${file.split("/").at(-1)} ${value}`);
    expect(files.slice(0, 2)).toEqual([
      "memory.memsw.limit_in_bytes -1",
      `memory.limit_in_bytes ${4 * gibibyte}`,
    ]);
  });

  it("is without limits again when they are taken away", () => {
    expect(noLimits(1).map(({ value }) => value)).toEqual(["-1", "-1", "-1", "-1", "1024", "max"]);
    expect(noLimits(2).map(({ value }) => value)).toEqual(["max", "max", "max", "100", "max"]);
  });
});

describe("the control group of a build's step, where systemd drives them", () => {
  const files = ["memory.max", "memory.swap.max", "cpu.max", "cpu.weight", "pids.max"];
  const makeGroup = (folder: string): void => {
    mkdirSync(folder);
    for (const name of files) writeFileSync(join(folder, name), "max");
  };
  const read = (folder: string) =>
    Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), "utf8").slice(0, 13)]));
  const limited = {
    "memory.max": String(2 * gibibyte),
    "memory.swap.max": "0ax",
    "cpu.max": "100000 100000",
    "cpu.weight": "25x",
    "pids.max": "1024",
  };

  it("gets the limits of a build as soon as it is there; what else is beside dockerd keeps its own", async () => {
    const slice = temporaryFolder();
    const group = (name: string) => join(slice, name);
    makeGroup(group("system.slice:docker:before"));
    const errors: unknown[] = [];
    const steps = watchSteps(slice, limits, (error) => errors.push(error));
    makeGroup(`${slice}.step`);
    makeGroup(group("docker-0123.scope"));
    mkdirSync(group("nothing.slice:docker:gone"));
    rmdirSync(group("nothing.slice:docker:gone"));
    // As mkdir does for a control group: with all its files at once.
    renameSync(`${slice}.step`, group("system.slice:docker:step"));
    for (const name of ["before", "step"])
      await expect.poll(() => read(group(`system.slice:docker:${name}`))).toEqual(limited);
    expect(read(group("docker-0123.scope"))["memory.max"]).toBe("max");
    expect(errors).toEqual([]);
    steps.end();
  });
});

describe("the disk's floor", () => {
  it("is 2 GiB, 5 % of a large disk, or what the operator says", () => {
    const disk = (size: number) => ({ freeBytes: 0, totalBytes: size * gibibyte });
    expect(floorBytes(disk(10), null)).toBe(2 * gibibyte);
    expect(floorBytes(disk(1000), null)).toBe(50 * gibibyte);
    expect(floorBytes(disk(1000), 1024)).toBe(gibibyte);
    expect(floorBytes(disk(1000), 0)).toBe(0);
  });

  it("says it in files where those run out before bytes do", () => {
    const disk = diskOf({ bavail: 5e6, blocks: 1e7, bsize: 4096, files: 1e6, ffree: 1234 });
    expect(tooFull(disk, null)).toBe(
      "This host has room on its disk for only 1,234 more files, and a deployment needs room for 52,429: try again later, or ask the operator to make room.",
    );
  });

  it("keeps deployments from beginning, with a sentence that says how much is free", async () => {
    await demandDisk([tmpdir()], 0);
    await expect(demandDisk([tmpdir()], 1e9)).rejects.toThrow(
      /^This host has only \d+\.\d GB of free disk space, and a deployment needs /,
    );
    await demandDisk(["/not/to/be/seen/from/here"], 1e9);
  });

  it("is made by giving up the engine's build cache before a deployment is refused", async () => {
    const kept: number[] = [];
    const directories = { rootDirectory: tmpdir(), imageDirectory: tmpdir() };
    const engine = {
      facts: () => Promise.resolve(directories),
      pruneBuildCache: (keepBytes: number) => Promise.resolve(kept.push(keepBytes)),
    } as unknown as Engine;
    const room = openBuildRoom({
      engine,
      workDirectory: tmpdir(),
      limits,
      slots: 1,
      minFreeDiskMb: 1e9,
      maxCacheMb: 1024,
    });
    await expect(room.demandDisk()).rejects.toThrow(/^This host has only/);
    await expect(room.demandDisk()).rejects.toThrow(/^This host has only/);
    expect(kept).toEqual([gibibyte, 0]);
  });

  it("is that of files where those run out before bytes do, and of bytes where files have no bound", () => {
    const disk = (files: number, ffree: number) =>
      diskOf({ bsize: 4096, blocks: 1000, bavail: 500, files, ffree });
    const [totalBytes, half] = [4096 * 1000, 4096 * 500];
    expect(disk(100, 60)).toEqual({ totalBytes, freeBytes: half });
    expect(disk(100, 10)).toEqual({ totalBytes, freeBytes: totalBytes / 10, bytesPerFile: totalBytes / 100 });
    expect(disk(0, 0)).toEqual({ totalBytes, freeBytes: half });
  });

  it("is looked at where there is the least room, of all disks that the engine writes to", async () => {
    const [files, memory] = [await diskAt("/"), await diskAt("/dev/shm")];
    const fuller = files!.freeBytes < memory!.freeBytes ? files : memory;
    const found = await fullestOf(["/", "/dev/shm", "/not/to/be/seen/from/here"], 0);
    expect(found?.totalBytes).toBe(fuller?.totalBytes);
    expect(await fullestOf(["/not/to/be/seen/from/here"], 0)).toBeNull();
  });

  it("ends a build that eats what was left", async () => {
    const disk = watchDisk([tmpdir()], 1e9, { ended: "The build", advice: "make it write less" });
    await new Promise((resolve) => disk.signal.addEventListener("abort", resolve));
    expect(String(disk.signal.reason)).toContain("ran out of free disk");
    disk.end();
  });
});

it("a log is cut after 4 MiB, says so once, and still holds what the agent says and what was printed last", () => {
  const shown: string[] = [];
  const source = { jobId: "job_1", attempt: 1, deploymentId: "dep_1" } as unknown as ConstructorParameters<
    typeof LogOutbox
  >[0];
  const outbox = new LogOutbox(source, ({ firstSeq, lines }) => {
    shown.push(...lines.map(({ text }) => text));
    acknowledge = firstSeq + lines.length - 1;
  });
  let acknowledge = 0;
  for (let line = 0; line < 6000; line++) {
    outbox.add("x".repeat(1000), "stdout", new Date());
    outbox.flush();
    outbox.acknowledge(acknowledge);
  }
  outbox.add("Waiting for an answer.", "system", new Date());
  const last = (text: string) => ({ text, stream: "stderr", at: new Date().toISOString() }) as const;
  const tooMuch = [
    last("far too much ".repeat(30_000)),
    ...Array.from({ length: 40 }, () => last("y".repeat(8000))),
  ];
  outbox.addLast([...tooMuch, last("the reason")]);
  outbox.flush();
  outbox.close();
  expect(shown.filter((line) => line === "The log is truncated after 4 MiB.")).toHaveLength(1);
  const behind = shown.slice(shown.indexOf("Waiting for an answer.") + 1);
  expect([behind[0], behind.at(-1)]).toEqual(["It printed last:", "the reason"]);
  expect(behind.join("").length).toBeGreaterThan(200 * 1024);
  expect(behind.join("").length).toBeLessThan(256 * 1024);
  expect(shown.join("").length).toBeLessThan(4.3 * 1024 * 1024);
  expect(shown.join("").length).toBeGreaterThan(3.5 * 1024 * 1024);
});

import { beforeEach, expect, it } from "vitest";
import type { Engine, Program } from "../../agent/docker/engine.ts";
import { WriteLimits } from "../../agent/databases/write-limits.ts";

let said: string[];
let events: string[];
let writes: WriteLimits;

beforeEach(() => {
  [said, events] = [[], []];
  const engine = {
    inspectContainer: (id: string) =>
      Promise.resolve({ id, running: true, env: ["POSTGRES_DB=data_x", "POSTGRES_PASSWORD=a=b"] }),
    execute(_: string, { input = "" }: Program) {
      said.push(input.includes("NOLOGIN") ? "none" : input.includes("RESET") ? "all" : "less");
      return Promise.resolve({ exitCode: 0, stdout: "", stderr: "" });
    },
  } as unknown as Engine;
  const records = {
    addEvent: (_id: string, _container: string, { detail }: { detail: string }) => void events.push(detail),
  };
  writes = new WriteLimits({ engine, records });
});

const judge = (usedMb: number, isShort = true, containerId = "c1", diskGb = 1) =>
  writes.judge({ databaseId: "db_1", containerId, usedMb, diskGb }, isShort);

it("leaves a database alone that is beyond its pack where there is room, or hardly beyond it, or has no pack's disk", async () => {
  await judge(9000, false);
  await judge(1120);
  await judge(9000, true, "c1", 0);
  expect([said, events]).toEqual([[], []]);
});

it("makes it read-only until it is back under its pack, says so once, and asks the server each time", async () => {
  await judge(1200);
  await judge(1210);
  await judge(1100, false);
  await judge(1024, false);
  await judge(1000, false);
  expect(said).toEqual(["less", "less", "all"]);
  expect(events).toEqual([
    expect.stringMatching(/holds 1\.2 GB, its pack has 1 GB and its host is short of disk: it is read-only/),
    expect.stringMatching(/accepts writes/),
  ]);
});

it("takes everything from one that grows by another tenth all the same", async () => {
  await judge(1200);
  await judge(1301);
  await judge(1303);
  await judge(1200);
  expect(said).toEqual(["less", "less", "none", "none"]);
  expect(events.length).toBe(2);
});

it("begins anew with another container, which a start has allowed everything", async () => {
  await judge(1200);
  await judge(1400);
  await judge(1400, true, "c2");
  expect(said).toEqual(["less", "none", "less"]);
});

it("lifts what an earlier agent may have set, without an event, and only once", async () => {
  await judge(900, false);
  await judge(901, false);
  expect([said, events]).toEqual([["all"], []]);
});

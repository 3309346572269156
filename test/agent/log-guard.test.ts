import { expect, it } from "vitest";
import { LogGuard } from "../../agent/running/log-guard.ts";
import type { SiteEvent } from "../../protocol/api/running.ts";

const megabyte = 1024 * 1024;

/** A host whose only container has half a processor. */
function hostWith(labels: Record<string, string> = { "berth.site": "s1" }, logFile = "/log") {
  const rotateAt = 10_000_000;
  let [nowMs, size, inode, milli] = [0, 0, 1, 500];
  const events: [string, SiteEvent][] = [];
  const held: number[] = [];
  const container = { id: "c1", running: true, pid: 7, cpuMilli: 500, labels, logFile };
  const state = { silent: false, full: false };
  const guard = new LogGuard({
    engine: {
      listContainers: () => Promise.resolve([{ id: "c1", name: "c1", running: true, labels }]),
      inspectContainer: () =>
        state.silent
          ? Promise.reject(new Error("It does not answer"))
          : Promise.resolve({ ...container } as never),
    },
    records: {
      addEvent(owner, _id, event) {
        if (state.full) throw new Error("database or disk is full");
        events.push([owner, event]);
      },
    },
    agentId: "a",
    now: () => nowMs,
    stat: (file) => {
      const number = ["/log", "/log.1", "/log.2"].indexOf(file);
      if (number < 0) throw new Error("EACCES");
      return { ino: inode - number, size: number === 0 ? size : rotateAt, birthtimeMs: inode - number };
    },
    hold: ({ pid }, to) => {
      // Nothing changes in the control group of a process that has ended.
      if (pid === container.pid) held.push((milli = to));
    },
  });
  return {
    events,
    held,
    container,
    state,
    /** As the engine starts it: in a control group of its pack. */
    startAgain() {
      container.running = true;
      container.pid++;
      milli = 500;
    },
    milli: () => milli,
    /** What it wrote a second, on average. */
    async write(bytesPerSecondAtPack: number, seconds: number): Promise<number> {
      let written = 0;
      for (let look = 0; look < seconds / 2; look++) {
        await guard.look();
        nowMs += 2000;
        const bytes = 2 * bytesPerSecondAtPack * (milli / 500);
        written += bytes;
        size += bytes;
        [size, inode] = [size % rotateAt, inode + Math.floor(size / rotateAt)];
      }
      await guard.look();
      return written / seconds;
    },
  };
}

it("who writes to its log without end is slowed to what it may write, told once, and let go when it stops", async () => {
  const on = hostWith();
  await on.write(20 * megabyte, 30);
  expect(await on.write(20 * megabyte, 60)).toBeLessThan(2.5 * megabyte);
  expect(on.events).toMatchObject([["s1", { kind: "slowed", detail: expect.stringContaining("log less") }]]);
  await on.write(1000, 30);
  expect(on.milli()).toBe(500);
  await on.write(20 * megabyte, 60);
  expect(on.events).toHaveLength(1);
});

it("one millisecond of each second is the least it is left", async () => {
  const on = hostWith();
  await on.write(1000 * megabyte, 60);
  expect(on.milli()).toBe(1);
});

it("who starts with much, or writes as much as it may for ever, is left alone", async () => {
  const on = hostWith();
  await on.write(10 * megabyte, 2);
  // 50,000 short lines a second, with what the engine writes beside each.
  await on.write(7.5 * megabyte, 20);
  await on.write(0.9 * megabyte, 600);
  expect(on.held).toEqual([]);
  expect(on.events).toEqual([]);
});

it("commands and databases are held to the same; others' containers and logs that cannot be read are left alone", async () => {
  for (const labels of [{ "berth.commands-of": "s1" }, { "berth.database": "s1" }]) {
    const on = hostWith(labels);
    await on.write(20 * megabyte, 30);
    expect(on.events.map(([owner]) => owner)).toEqual(["s1"]);
  }
  for (const on of [hostWith({ "berth.ingress": "1" }), hostWith(undefined, "/elsewhere")]) {
    await on.write(20 * megabyte, 30);
    expect(on.held).toEqual([]);
  }
});

it("who is started again by the engine is slowed as before, and let go when it stops", async () => {
  const on = hostWith();
  await on.write(1000, 4);
  on.startAgain();
  await on.write(20 * megabyte, 30);
  expect(on.milli()).toBeLessThan(100);
  on.startAgain();
  await on.write(20 * megabyte, 4);
  expect(on.milli()).toBeLessThan(100);
  await on.write(1000, 30);
  expect(on.milli()).toBe(500);
  expect(on.events).toHaveLength(1);
});

it("who is met between two lives is found in the next", async () => {
  const on = hostWith();
  on.container.running = false;
  await on.write(1000, 2);
  on.startAgain();
  await on.write(20 * megabyte, 60);
  expect(on.milli()).toBeLessThan(100);
});

it("who is slowed stays so while the engine does not answer", async () => {
  const on = hostWith();
  await on.write(20 * megabyte, 30);
  const slowed = on.milli();
  on.state.silent = true;
  await on.write(20 * megabyte, 10);
  expect(on.milli()).toBeLessThanOrEqual(slowed);
  on.state.silent = false;
  await on.write(1000, 30);
  expect(on.milli()).toBe(500);
});

it("who writes without end is slowed, and let go, also while the disk is too full to say so", async () => {
  const on = hostWith();
  on.state.full = true;
  await on.write(20 * megabyte, 30);
  expect(await on.write(20 * megabyte, 60)).toBeLessThan(2.5 * megabyte);
  await on.write(1000, 30);
  expect(on.milli()).toBe(500);
});

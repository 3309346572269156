import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
import { fencedHost } from "../../agent/fenced-host.ts";
import type { Host } from "../../agent/host.ts";
import { standStill } from "../../agent/volumes/stand-still.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function engineThatNotes() {
  const done: string[] = [];
  const engine = {
    pauseContainer: async (id: string) => void done.push(`pause ${id}`),
    resumeContainer: async (id: string) => void done.push(`resume ${id}`),
  } as Partial<Engine> as Engine;
  return { engine, done };
}

it("containers stand still until the end, or for five seconds, and are woken once", async () => {
  const { engine, done } = engineThatNotes();
  const short = await standStill(engine, ["one", "two"]);
  await vi.advanceTimersByTimeAsync(4999);
  expect(await short.end()).toBe(true);
  expect(done).toEqual(["pause one", "pause two", "resume one", "resume two"]);

  const long = await standStill(engine, ["one"]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(done.splice(4)).toEqual(["pause one", "resume one"]);
  expect(await long.end()).toBe(false);
  expect(done).toHaveLength(4);
});

it("a container that the engine does not wake is woken once it does, also after the job; the others, and the job, wait for none", async () => {
  const { engine, done } = engineThatNotes();
  let isAway = true;
  engine.resumeContainer = async (id) => {
    if (isAway && id === "one") throw new Error("connect ECONNREFUSED");
    done.push(`resume ${id}`);
  };
  const over = new AbortController();
  const fenced = fencedHost({ engine } as Host, over.signal);
  const still = await standStill(fenced.engine, ["one", "two"]);
  expect(await still.end()).toBe(true);
  expect(done.splice(0)).toEqual(["pause one", "pause two", "resume two"]);
  over.abort(new Error("The job is over"));
  await vi.advanceTimersByTimeAsync(60_000);
  isAway = false;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([done, vi.getTimerCount()]).toEqual([["resume one"], 0]);
});

it("containers that an engine freezes only when the time is up are woken at once", async () => {
  const { engine, done } = engineThatNotes();
  engine.pauseContainer = async (id) => {
    await new Promise((resolve) => void setTimeout(resolve, 3000));
    done.push(`pause ${id}`);
  };
  const begun = standStill(engine, ["one", "two"]);
  await vi.advanceTimersByTimeAsync(6000);
  expect(await (await begun).end()).toBe(false);
  expect(done.slice(-3)).toEqual(["pause two", "resume one", "resume two"]);
});

it("containers of which the engine freezes one not at all are woken, and do not count as standing still", async () => {
  const { engine, done } = engineThatNotes();
  engine.pauseContainer = async (id) => {
    if (id === "two") throw new Error("OCI runtime pause failed: unable to freeze: unknown");
    done.push(`pause ${id}`);
  };
  const still = await standStill(engine, ["one", "two"]);
  expect(done).toEqual(["pause one", "resume one", "resume two"]);
  expect([await still.end(), vi.getTimerCount()]).toEqual([false, 0]);
  // The next one waits for nothing.
  expect(await (await standStill(engine, ["one"])).end()).toBe(true);
});

it("of two volumes of one container that are copied at once, the second waits: the end of the first wakes it for neither", async () => {
  const { engine, done } = engineThatNotes();
  const first = await standStill(engine, ["one"]);
  const begun = standStill(engine, ["two", "one"]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(done).toEqual(["pause one"]);
  expect(await first.end()).toBe(true);
  const second = await begun;
  expect(done.splice(0)).toEqual(["pause one", "resume one", "pause two", "pause one"]);
  expect(await second.end()).toBe(true);
  const third = await standStill(engine, ["one"]);
  await vi.advanceTimersByTimeAsync(5000);
  await (await standStill(engine, ["one"])).end();
  expect(await third.end()).toBe(false);
});

it("where nothing runs, everything stands still for as long as it takes", async () => {
  const still = await standStill(engineThatNotes().engine, []);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await still.end()).toBe(true);
});

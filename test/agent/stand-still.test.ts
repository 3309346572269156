import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Engine } from "../../agent/docker/engine.ts";
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

it("where nothing runs, everything stands still for as long as it takes", async () => {
  const still = await standStill(engineThatNotes().engine, []);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await still.end()).toBe(true);
});

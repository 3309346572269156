import { expect, it, vi } from "vitest";
import { watchEngine } from "../../agent/running/watch-engine.ts";

it("says when the engine no longer answers, and when it does again, each once", async () => {
  const stop = new AbortController();
  const said: boolean[] = [];
  let asked = 0;
  let answer = () => Promise.reject<void>(new Error("ECONNREFUSED"));
  const twice = () =>
    vi.waitUntil(
      (
        (end) => () =>
          asked >= end
      )(asked + 3),
    );
  const problem = watchEngine(
    { ping: () => (asked++, answer()) },
    stop.signal,
    (answers) => said.push(answers),
    1,
  );
  await twice();
  expect(said).toEqual([false]);
  expect(problem()).toMatch(/^Its Docker engine does not answer.*systemctl status docker/);
  answer = () => Promise.resolve();
  await twice();
  stop.abort();
  expect(said).toEqual([false, true]);
  expect(problem()).toBe(null);
});

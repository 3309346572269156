import { expect, it } from "vitest";
import { durationsOf, timesTaken, timesUntilEnd, type PhaseStart } from "../../agent/phase-times.ts";

it("a deployment says how long each of its steps took, and nothing of those that it had not", () => {
  const all = { clone: 94, build: 2449, release: 61_200, start: 512, swap: 100 };
  expect(timesTaken(all)).toBe(
    "Fetched in 0.09 s, built in 2.4 s, released in 61.2 s, started in 0.5 s, put into service in 0.1 s.",
  );
  expect(timesTaken({ clone: null, build: null, start: 700, swap: 7, release: null })).toBe(
    "Started in 0.7 s, put into service in 0.01 s.",
  );
  expect(timesTaken({ clone: null, build: null, start: null, swap: null })).toBeNull();
});

it("one that ended before it was live says what it was at, and for how long", () => {
  const began: PhaseStart[] = [
    ["clone", 1000],
    ["build", 1050],
  ];
  expect(timesUntilEnd(began, 4050)).toBe("Fetched in 0.05 s, ended after 3.0 s of building.");
  expect(timesUntilEnd([["swap", 0]], 20)).toBe("Ended after 0.02 s of putting it into service.");
  expect(timesUntilEnd([], 20)).toBeNull();
  expect(durationsOf(began)).toEqual({ clone: 50, build: null, start: null, swap: null });
});

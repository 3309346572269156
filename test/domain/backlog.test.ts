import { expect, it } from "vitest";
import { Backlog } from "../../worker/domain/backlog.ts";

const admittedOf = (backlog: Backlog, nowMs: number) =>
  Array.from({ length: 20 }, () => backlog.admits(nowMs)).filter(Boolean).length;

it("no more waits than is done within the time, however much comes, and as much again as was done", () => {
  const backlog = new Backlog(200, 1000);
  expect([5000, 5000, 5400, 60_000].map((nowMs) => admittedOf(backlog, nowMs))).toEqual([6, 0, 2, 6]);
});

it("a clock that is set back keeps nobody out", () => {
  const backlog = new Backlog(200, 1000);
  backlog.admits(500_000);
  expect(admittedOf(backlog, 1000)).toBe(6);
});

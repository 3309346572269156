import { expect, it } from "vitest";
import { Ticks } from "../../worker/domain/ticks.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const yearMs = 365 * 24 * hourMs;
const start = Date.parse("2026-12-31T23:58:20Z");
const started = () => {
  const ticks = new Ticks(minuteMs);
  ticks.next(start);
  return ticks;
};

it("ticks come just after each full minute", () => {
  const ticks = new Ticks(minuteMs);
  expect(new Date(ticks.next(start)).toISOString()).toBe("2026-12-31T23:59:00.050Z");
  expect(new Date(ticks.next(start + 41_000)).toISOString()).toBe("2027-01-01T00:00:00.050Z");
});

it("a clock begins with the first request, and again once its tick is far away because the machine's clock was set back", () => {
  const ticks = new Ticks(minuteMs);
  expect(ticks.isLost(start)).toBe(true);
  ticks.next(start);
  expect([0, minuteMs, 2 * minuteMs].map((later) => ticks.isLost(start + later))).toEqual([
    false,
    false,
    false,
  ]);
  expect(ticks.isLost(start - hourMs)).toBe(true);
  ticks.next(start - hourMs);
  expect(ticks.isLost(start - hourMs + minuteMs)).toBe(false);
});

it("a tick that never came is made up for", () => {
  expect(started().isLost(start + 5 * minuteMs)).toBe(true);
});

it("tasks run at each tick, and after hours without one, such as a machine's sleep", () => {
  const ticks = started();
  ticks.next(start + minuteMs);
  expect(ticks.mayRun()).toBe(true);
  ticks.next(start + 20 * hourMs);
  expect(ticks.mayRun()).toBe(true);
});

it("no task runs in a year to which the machine's clock goes for some minutes, and all do ten minutes after that", () => {
  const ticks = started();
  for (let minute = 1; minute <= 5; minute++) {
    ticks.next(start + yearMs + minute * minuteMs);
    expect(ticks.mayRun()).toBe(false);
  }
  const back = (minute: number) => {
    ticks.next(start + minute * minuteMs);
    return ticks.mayRun();
  };
  const ran = Array.from({ length: 8 }, (_, minute) => back(6 + minute));
  expect(ran).toEqual([false, false, false, false, false, true, true, true]);
});

it("a request that begins the clock anew after a jump does not hide the jump from its tasks", () => {
  const ticks = started();
  expect(ticks.isLost(start + yearMs)).toBe(true);
  ticks.next(start + yearMs);
  ticks.next(start + yearMs + minuteMs);
  expect(ticks.mayRun()).toBe(false);
});

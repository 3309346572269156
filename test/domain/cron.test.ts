import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CronExpression } from "../../protocol/api/schedules.ts";
import { cronProblem, nextRun } from "../../worker/domain/cron.ts";

const next = (cron: string, after: string) => nextRun(cron, new Date(after))?.toISOString() ?? null;

describe("the next run", () => {
  it.each([
    ["* * * * *", "2026-11-30T23:59:30.000Z", "2026-12-01T00:00:00.000Z"],
    ["*/15 * * * *", "2026-11-21T10:45:00.000Z", "2026-11-21T11:00:00.000Z"],
    ["@hourly", "2026-12-31T23:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["@daily", "2026-02-28T12:00:00.000Z", "2026-03-01T00:00:00.000Z"],
    ["@midnight", "2028-02-28T12:00:00.000Z", "2028-02-29T00:00:00.000Z"],
    ["@weekly", "2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
    ["@Annually", "2026-11-21T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["0 0 31 * *", "2026-11-01T00:00:00.000Z", "2026-12-31T00:00:00.000Z"],
    ["0 0 29 2 *", "2026-03-01T00:00:00.000Z", "2028-02-29T00:00:00.000Z"],
    ["30 3 * * MON", "2026-11-21T00:00:00.000Z", "2026-11-23T03:30:00.000Z"],
    ["0 0 * * 7", "2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
    // Where days of the month and of the week are both named, either will do (crontab(5)).
    ["0 0 13 * fri", "2026-11-21T00:00:00.000Z", "2026-11-27T00:00:00.000Z"],
  ])("of %s after %s is %s", (cron, after, wanted) => {
    expect(next(cron, after)).toBe(wanted);
  });

  it("is refused for an expression with seconds or years, also where no schema has read it", () => {
    for (const cron of ["0 * * * * *", "0 * * * * * 2027"])
      expect(cronProblem(cron, new Date(0))).toMatch(/^not a cron expression/);
  });

  it("is the same hour of UTC all the year, whatever clocks are put forward or back", () => {
    // Europe and North America change their clocks within these days, between one and three in the morning.
    for (const [from, days] of [
      ["2026-03-07T00:00:00.000Z", 24],
      ["2026-10-24T00:00:00.000Z", 10],
    ] as const) {
      let at = new Date(from);
      for (let day = 0; day < days; day++) {
        const then = nextRun("30 1-2 * * *", at);
        expect(then && then.getTime() - at.getTime()).toBeLessThanOrEqual(24 * 3_600_000);
        expect([1, 2]).toContain(then?.getUTCHours());
        expect(then?.getUTCMinutes()).toBe(30);
        at = then ?? at;
      }
    }
  });
});

type Field = { text: string; matches: (value: number) => boolean };
const any: Field = { text: "*", matches: () => true };
const field = (low: number, high: number): fc.Arbitrary<Field> =>
  fc.oneof(
    fc.constant(any),
    fc
      .integer({ min: low, max: high })
      .map((one) => ({ text: `${one}`, matches: (value: number) => value === one })),
    fc
      .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
      .map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const)
      .map(([from, to]) => ({
        text: `${from}-${to}`,
        matches: (value: number) => value >= from && value <= to,
      })),
    fc
      .uniqueArray(fc.integer({ min: low, max: high }), { minLength: 2, maxLength: 4 })
      .map((list) => ({ text: list.join(","), matches: (value: number) => list.includes(value) })),
    fc
      .integer({ min: 2, max: high - low })
      .map((step) => ({ text: `*/${step}`, matches: (value: number) => (value - low) % step === 0 })),
  );

it("is later than now, a full minute, named by the expression, and no earlier one is: for any expression and time", () => {
  const expression = fc.tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6));
  const times = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) });
  fc.assert(
    fc.property(expression, times, ([minute, hour, day, month, weekday], now) => {
      // Steps of days beside days of the week mean different things to different crons.
      fc.pre(
        !(day.text.startsWith("*/") && weekday !== any) && !(weekday.text.startsWith("*/") && day !== any),
      );
      const cron = [minute, hour, day, month, weekday].map(({ text }) => text).join(" ");
      expect(CronExpression.safeParse(cron).success).toBe(true);
      const named = (at: Date) =>
        minute.matches(at.getUTCMinutes()) &&
        hour.matches(at.getUTCHours()) &&
        month.matches(at.getUTCMonth() + 1) &&
        (day === any || weekday === any
          ? day.matches(at.getUTCDate()) && weekday.matches(at.getUTCDay())
          : day.matches(at.getUTCDate()) || weekday.matches(at.getUTCDay()));
      const then = nextRun(cron, new Date(now));
      const horizon = Math.min(then?.getTime() ?? Infinity, now + 3 * 86_400_000);
      if (then) {
        expect(then.getTime()).toBeGreaterThan(now);
        expect(then.getTime() % 60_000).toBe(0);
        expect(named(then)).toBe(true);
      }
      for (let at = Math.floor(now / 60_000) * 60_000 + 60_000; at < horizon; at += 60_000)
        if (named(new Date(at))) expect.fail(`${cron}: ${new Date(at).toISOString()} was left out`);
    }),
    { numRuns: 300 },
  );
});

it("an expression that is none, or names no day there is, is refused with a reason", () => {
  const now = new Date("2026-11-21T00:00:00.000Z");
  for (const cron of ["0 0 30 2 *", "0 0 31 4,6 *"])
    expect(cronProblem(cron, now)).toBe("this date never occurs");
  for (const cron of [
    "60 * * * *",
    "* 24 * * *",
    "*/70 * * * *",
    "5-1 * * * *",
    ", * * * *",
    "* * 0 * *",
    "* * * 13 *",
  ])
    expect(cronProblem(cron, now)).toMatch(/^not a cron expression/);
  for (const cron of [
    "",
    "* * * *",
    "* * * * * *",
    "@reboot",
    "* * L * *",
    "* * * * 5#2",
    "* * ? * *",
    "2026-11-21T00:00:00Z",
    "*  * * * *",
    "* * 15W * *",
  ])
    expect(CronExpression.safeParse(cron).success).toBe(false);
});

import fc from "fast-check";
import { expect, it } from "vitest";
import { cronProblem, nextRun } from "../../worker/domain/cron.ts";
import { cronWords } from "../../worker/domain/cron-words.ts";

it.each([
  ["* * * * *", "Every minute"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["5-59/15 * * * *", "Every 15 minutes, from minute 5 on"],
  ["*/15 9-17 * * mon-fri", "Every 15 minutes from 09:00 to 17:59 UTC, Monday to Friday"],
  ["* 3 * * *", "Every minute from 03:00 to 03:59 UTC"],
  ["0 * * * *", "Every hour, on the hour"],
  ["@hourly", "Every hour, on the hour"],
  ["30 * * * *", "Every hour at minute 30"],
  ["7,41 * * * *", "At minutes 7 and 41 of every hour"],
  ["30 */6 * * *", "Every 6 hours from 00:30 UTC on"],
  ["30 3 * * *", "Every day at 03:30 UTC"],
  ["@Daily", "Every day at 00:00 UTC"],
  ["30 3,15 * * *", "Every day at 03:30 and 15:30 UTC"],
  ["0 9 * * 1", "Every Monday at 09:00 UTC"],
  ["0 9 * * sat,7", "Every Sunday and Saturday at 09:00 UTC"],
  ["0 9 * * mon-sun", "Every day at 09:00 UTC"],
  ["0 9 * * Fri-Sun", "Every Sunday, Friday and Saturday at 09:00 UTC"],
  ["0 9 * * sat-sun", "Every Sunday and Saturday at 09:00 UTC"],
  ["0 9 * * sun-tue", "Sunday to Tuesday at 09:00 UTC"],
  ["*/15 9-17 * * fri-sun", "Every 15 minutes from 09:00 to 17:59 UTC, every Sunday, Friday and Saturday"],
  ["@weekly", "Every Sunday at 00:00 UTC"],
  ["@monthly", "On day 1 of each month at 00:00 UTC"],
  ["@yearly", "On day 1 of January at 00:00 UTC"],
  ["0 0 1,15 jan-mar *", "On the days 1 and 15 of January to March at 00:00 UTC"],
  ["0 0 13 * fri", "On day 13 of each month and every Friday at 00:00 UTC"],
  ["0 0 * 6 *", "Every day in June at 00:00 UTC"],
  ["0 0 1-31 * fri", "Every day at 00:00 UTC"],
])("%s: %s", (cron, words) => {
  expect(cronProblem(cron, new Date("2026-11-25T00:00:00Z"))).toBeNull();
  expect(cronWords(cron)).toBe(words);
});

it("times of the day that are told are those at which it runs", () => {
  const minute = fc.integer({ min: 0, max: 59 });
  const hour = fc.integer({ min: 0, max: 23 });
  fc.assert(
    fc.property(minute, fc.uniqueArray(hour, { minLength: 1, maxLength: 4 }), (at, hours) => {
      const cron = `${at} ${hours.join(",")} * * *`;
      const told = cronWords(cron).match(/\d\d:\d\d/g) ?? [];
      const ran: string[] = [];
      for (let time = new Date("2026-11-25T23:59:00Z"); ran.length < hours.length;) {
        time = nextRun(cron, time) ?? time;
        ran.push(time.toISOString().slice(11, 16));
      }
      // A rhythm names where it begins.
      expect(told.length === 1 ? [told[0]] : told).toEqual(told.length === 1 ? [ran[0]] : ran);
    }),
  );
});

it("days of the week that are told are those on which it runs", () => {
  const names = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
  const short = names.map((name) => name.slice(0, 3));
  const toldBy = (words: string): string[] => {
    if (words.startsWith("Every day")) return names;
    const told = names.filter((name) => words.includes(name));
    const [first = "", last = ""] = told;
    return words.includes(" to ") ? names.slice(names.indexOf(first), names.indexOf(last) + 1) : told;
  };
  for (const cron of short.flatMap((from) => short.map((to) => `0 9 * * ${from}-${to}`))) {
    const [start, end] = [new Date("2026-11-22T00:00:00Z"), new Date("2026-11-29T00:00:00Z")];
    if (cronProblem(cron, start) !== null) continue;
    const ran: string[] = [];
    for (let time = nextRun(cron, start); time !== null && time < end; time = nextRun(cron, time))
      ran.push(names[time.getUTCDay()] ?? "");
    expect([cron, toldBy(cronWords(cron))]).toEqual([cron, ran]);
  }
});

it("every valid expression has words", () => {
  const field = (low: number, high: number) =>
    fc
      .tuple(
        fc.integer({ min: low, max: high }),
        fc.integer({ min: low, max: high }),
        fc.integer({ min: 1, max: 9 }),
      )
      .chain(([one, other, step]) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)];
        return fc.constantFrom(
          "*",
          `*/${step}`,
          `${from}`,
          `${from}-${to}`,
          `${from}-${to}/${step}`,
          `${from},${to}`,
        );
      });
  fc.assert(
    fc.property(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7), (...fields) => {
      const words = cronWords(fields.join(" "));
      expect(words).toMatch(/^[A-Z]/);
      expect(words).not.toMatch(/undefined|NaN|  /);
    }),
  );
});

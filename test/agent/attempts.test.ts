import { expect, it } from "vitest";
import { Attempts, maxRepeatsPerHour } from "../../agent/ingress/attempts.ts";

const minuteMs = 60_000;

it("visitors who ask for one name all day cause few requests for its certificate, an hour apart in the end", () => {
  let now = 0;
  const attempts = new Attempts(() => now);
  const begun: number[] = [];
  for (; now < 5 * 60 * minuteMs; now += minuteMs)
    if (attempts.begin("a.example")) begun.push(now / minuteMs);
  expect(begun).toEqual([0, 5, 15, 35, 75, 135, 195, 255]);
});

it("however many names are asked for in vain, a host's requests are bounded, and a name's first one is among none of them", () => {
  let now = 0;
  const attempts = new Attempts(() => now);
  const names = Array.from({ length: 500 }, (_, index) => `${index}.example`);
  expect(names.filter((name) => attempts.begin(name))).toEqual(names);
  let repeats = 0;
  now += minuteMs;
  for (; now <= 60 * minuteMs; now += minuteMs)
    repeats += names.filter((name) => attempts.begin(name)).length;
  expect(repeats).toBe(maxRepeatsPerHour);
  expect(attempts.begin("new.example")).toBe(true);
});

it("a request that is asked for in two steps, to load what has expired and to renew it, is one", () => {
  let now = 0;
  const attempts = new Attempts(() => now);
  const asked = () => {
    now += 1000;
    return attempts.begin("a.example");
  };
  expect([asked(), asked()]).toEqual([true, true]);
  now += minuteMs;
  expect(asked()).toBe(false);
});

it("what the agent asks for waits for nothing, for half a minute", () => {
  let now = 0;
  const attempts = new Attempts(() => now);
  attempts.begin("a.example");
  now += minuteMs;
  expect(attempts.begin("a.example")).toBe(false);
  attempts.want("a.example");
  expect([attempts.begin("a.example"), attempts.begin("b.example")]).toEqual([true, true]);
  now += minuteMs;
  expect([attempts.begin("a.example"), attempts.begin("b.example")]).toEqual([false, false]);
});

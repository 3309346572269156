import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Answer } from "../../agent/ingress/table.ts";
import { maxWaiting, patienceMs, waitMs, Waiting } from "../../agent/ingress/waiting.ts";

const name = "shop.localhost";
let answer: Answer;
let isUp: boolean;
let looks: number;
let waiting: Waiting;

beforeEach(() => {
  vi.useFakeTimers();
  [answer, isUp, looks] = [[{ address: "10.0.0.1", port: 3000 }], false, 0];
  const covering = (asked: string) => (asked.endsWith(".shop.example") ? "*.shop.example" : asked);
  waiting = new Waiting(() => answer, covering, {
    takesAny: async () => {
      looks++;
      return isUp;
    },
  });
});
afterEach(() => void vi.useRealTimers());

/** What came of it, once it is known. */
function ask(whom = name) {
  const asked: { isUp?: boolean } = {};
  void waiting.wait(whom).then((known) => (asked.isUp = known));
  return asked;
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a request that met nobody", () => {
  it("goes on as soon as its site takes connections", async () => {
    const asked = ask();
    await pass(1000);
    expect(asked).toEqual({});
    isUp = true;
    await pass(100);
    expect(asked).toEqual({ isUp: true });
  });

  it("is given up after a while", async () => {
    const asked = ask();
    await pass(waitMs);
    expect(asked).toEqual({ isUp: false });
  });

  it("goes on at once where its name leads to a page by now", async () => {
    const asked = ask();
    answer = "parked";
    waiting.changed();
    await pass(0);
    expect([asked, ask()]).toEqual([{ isUp: true }, {}]);
    await pass(0);
    expect(waiting.isOut(name)).toBe(false);
  });

  it("waits with no more than so many others, which are looked for together", async () => {
    const all = Array.from({ length: maxWaiting + 5 }, () => ask());
    await pass(0);
    expect(all.filter((asked) => asked.isUp === false)).toHaveLength(5);
    await pass(1000);
    expect(looks).toBeLessThan(30);
    isUp = true;
    await pass(100);
    expect(all.filter((asked) => asked.isUp === true)).toHaveLength(maxWaiting);
  });

  it("waits with no more than so many others below a wildcard, whatever names are thought of, which are looked for once", async () => {
    const all = Array.from({ length: 1000 }, (_, index) => ask(`v${index}.shop.example`));
    await pass(0);
    expect(all.filter((asked) => asked.isUp === false)).toHaveLength(1000 - maxWaiting);
    await pass(1000);
    expect(looks).toBeLessThan(30);
    await pass(patienceMs);
    expect(waiting.isOut("another.shop.example")).toBe(true);
    isUp = true;
    await pass(1000);
    expect(waiting.isOut("another.shop.example")).toBe(false);
  });

  it("does not wait for a site that has been out for long, until that is back or replaced", async () => {
    ask();
    await pass(patienceMs + 1000);
    expect(waiting.isOut(name)).toBe(true);
    const asked = ask();
    await pass(0);
    expect(asked).toEqual({ isUp: false });
    answer = [{ address: "10.0.0.2", port: 3000 }];
    waiting.changed();
    expect(waiting.isOut(name)).toBe(false);
    const next = ask();
    await pass(1000);
    expect(next).toEqual({});
    await pass(patienceMs);
    expect(waiting.isOut(name)).toBe(true);
    isUp = true;
    await pass(1000);
    expect(waiting.isOut(name)).toBe(false);
  });

  it("leaves nothing to be looked at when nobody asks any more", async () => {
    ask();
    await pass(60_000);
    const before = looks;
    await pass(60_000);
    expect([looks, vi.getTimerCount()]).toEqual([before, 0]);
  });
});

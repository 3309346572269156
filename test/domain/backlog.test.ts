import { describe, expect, it } from "vitest";
import { Backlog } from "../../worker/domain/backlog.ts";

const stranger = (address: number | string) => ({ address: `203.0.113.${address}`, known: null });
let addresses = 0;
const admittedOf = (backlog: Backlog, nowMs: number) =>
  Array.from({ length: 20 }, () => backlog.admits(nowMs, stranger(`new ${addresses++}`))).filter(Boolean)
    .length;

it("no more waits than is done within the time, however much comes, and as much again as was done", () => {
  const backlog = new Backlog(200, 1000);
  expect([5000, 5000, 5400, 60_000].map((nowMs) => admittedOf(backlog, nowMs))).toEqual([6, 0, 2, 6]);
});

it("a clock that is set back keeps nobody out, nor counts what an address had by the clock before", () => {
  const backlog = new Backlog(200, 1000);
  backlog.admits(500_000, stranger(1));
  expect(admittedOf(backlog, 1000)).toBe(6);
  const greedy = new Backlog(200, 1000);
  const had = (nowMs: number) =>
    Array.from({ length: 20 }, () => greedy.admits(nowMs, stranger(1))).filter(Boolean).length;
  expect([had(500_000), had(1000)]).toEqual([3, 3]);
});

describe("known devices", () => {
  const full = (backlog: Backlog, nowMs: number) => {
    while (backlog.admits(nowMs, stranger(`new ${addresses++}`)));
  };
  const known = (account: string) => ({ ...stranger(`new ${addresses++}`), known: account });

  it("of an account are taken for its owner five times a minute, wherever they are", () => {
    const backlog = new Backlog(200, 5000);
    const admitted = (nowMs: number) => {
      full(backlog, nowMs);
      return Array.from({ length: 10 }, () => backlog.admits(nowMs, known("ada"))).filter(Boolean).length;
    };
    expect([0, 59_999, 60_000].map(admitted)).toEqual([5, 0, 5]);
  });

  it("have as many places as strangers, and no more", () => {
    const backlog = new Backlog(200, 5000);
    full(backlog, 0);
    const asked = Array.from({ length: 100 }, (_, at) => backlog.admits(0, known(`account ${at}`)));
    expect(asked.filter(Boolean)).toHaveLength(25);
  });
});

describe("while fifteen addresses ask without end", () => {
  /** Each second of two minutes: all of them, up to their twenty a minute, then those who are to be admitted. */
  const refusedOf = (
    askers: (second: number) => { address: string; known: string | null }[],
    attackers = 15,
  ) => {
    const backlog = new Backlog(200, 5000);
    const attacker = (at: number) => stranger(`attacker ${at}`);
    const refused: string[] = [];
    for (let second = 0; second < 120; second++) {
      for (let at = 0; at < attackers; at++)
        for (let times = 0; times < 2; times++) backlog.admits(second * 1000, attacker(at));
      for (const asker of askers(second))
        if (!backlog.admits(second * 1000, asker)) refused.push(asker.address);
    }
    return refused;
  };

  it("others are admitted, three each second, each once", () =>
    expect(refusedOf((second) => [0, 1, 2].map((at) => stranger(`other ${second} ${at}`)))).toEqual([]));

  it("and three hundred more ask once or twice, who signs in on a known device is admitted, however many fail on it elsewhere", () =>
    expect(
      refusedOf(
        (second) => (second % 20 === 0 ? [{ ...stranger("home"), known: "ada@example.com" }] : []),
        300,
      ),
    ).toEqual([]));

  it("nobody takes others' turn by being known and asking without end", () => {
    const greedy = Array.from({ length: 20 }, () => ({ ...stranger("greedy"), known: "eve@example.com" }));
    const refused = refusedOf((second) => [...greedy, stranger(`other ${second}`)]);
    const others = refused.filter((address) => address !== stranger("greedy").address);
    // Five of its own a minute stand in the places of known devices.
    expect(others.length).toBeLessThan(5);
    expect(refused.length - others.length).toBeGreaterThan(120 * 18);
  });
});

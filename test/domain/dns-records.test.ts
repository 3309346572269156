import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  planZone,
  retryMs,
  wantedSets,
  type FoundSet,
  type RecordSet,
} from "../../worker/domain/dns-records.ts";

const name = fc.constantFrom("a.sites.test", "b.sites.test", "c.sites.test", "_acme-challenge.sites.test");
const content = fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3");
const unique = <T extends { name: string; type: string }>(items: T[]) => [
  ...new Map(items.map((item) => [`${item.name}/${item.type}`, item])).values(),
];
const set = fc.record({
  name,
  type: fc.constantFrom("A" as const, "AAAA" as const, "TXT" as const),
  contents: fc.uniqueArray(content, { minLength: 1, maxLength: 3 }),
  ttlSeconds: fc.constantFrom(60, 300),
  proxied: fc.boolean(),
});
const foundSet = (ours: boolean) =>
  fc.record({
    name,
    type: fc.constantFrom(...(ours ? ["A", "AAAA", "TXT"] : ["A", "AAAA", "TXT", "CNAME", "MX", "CAA"])),
    contents: fc.uniqueArray(content, { minLength: 1, maxLength: 3 }),
    ttlSeconds: fc.constantFrom(60, 300),
    proxied: fc.boolean(),
    ours: fc.constant(ours),
    ids: fc.constant<string[]>([]),
  });
const zones = fc
  .tuple(fc.array(foundSet(true)), fc.array(foundSet(false)))
  .map(([own, others]): FoundSet[] => [...unique(own), ...unique(others)]);
const wanted = fc.array(set).map((sets): RecordSet[] => unique(sets));

/** The zone after a provider has made these changes. */
function applied(found: readonly FoundSet[], changes: ReturnType<typeof planZone>["changes"]): FoundSet[] {
  const gone = new Set(
    changes.flatMap((change) => change.found ?? []).map((one) => `${one.name}/${one.type}`),
  );
  return [
    ...found.filter((one) => !one.ours || !gone.has(`${one.name}/${one.type}`)),
    ...changes.flatMap((change) => (change.wanted ? [{ ...change.wanted, ours: true, ids: [] }] : [])),
  ];
}
const plain = (sets: readonly (FoundSet | RecordSet)[]) =>
  sets
    .map(({ name: at, type, contents, ttlSeconds, proxied }) =>
      JSON.stringify([at, type, contents.toSorted(), ttlSeconds, proxied]),
    )
    .toSorted();

describe("the plan for a zone", () => {
  it("never changes a record that somebody else created", () => {
    fc.assert(
      fc.property(wanted, zones, (want, found) => {
        const { changes } = planZone(want, found);
        for (const change of changes) if (change.found) expect(change.found.ours).toBe(true);
        expect(plain(applied(found, changes).filter(({ ours }) => !ours))).toEqual(
          plain(found.filter(({ ours }) => !ours)),
        );
      }),
    );
  });

  it("leaves of our own records exactly the wanted ones, except where another's record is in the way, which it reports", () => {
    fc.assert(
      fc.property(wanted, zones, (want, found) => {
        const { changes, conflicts } = planZone(want, found);
        const own = applied(found, changes).filter(({ ours }) => ours);
        const blocked = new Set(conflicts.map(({ name: at, type }) => `${at}/${type}`));
        const missing = want.filter(
          (one) => !own.some((two) => two.name === one.name && two.type === one.type),
        );
        for (const { name: at, type } of missing) expect(blocked).toContain(`${at}/${type}`);
        expect(plain(own)).toEqual(plain(want.filter((one) => !missing.includes(one))));
      }),
    );
  });

  const wants = (type: RecordSet["type"], contents = ["192.0.2.1"], at = "a.sites.test"): RecordSet => ({
    name: at,
    type,
    contents,
    ttlSeconds: 60,
    proxied: false,
  });
  const has = (type: string, contents: string[], ours = false, at = "a.sites.test"): FoundSet => ({
    ...wants("A", contents, at),
    type,
    ours,
    ids: [],
  });

  it.each<[wanted: RecordSet["type"], found: string, isInTheWay: boolean]>([
    ...["A", "AAAA", "CNAME", "DNAME", "ALIAS", "LUA", "NS"].map((found): ["A", string, boolean] => [
      "A",
      found,
      true,
    ]),
    ...["TXT", "MX", "CAA"].map((found): ["A", string, boolean] => ["A", found, false]),
    ["AAAA", "A", true],
    ["TXT", "TXT", true],
    ["TXT", "CNAME", true],
    ["TXT", "A", false],
  ])("of %s beside %s of somebody else: that is in the way: %s", (type, found, isInTheWay) => {
    const others = [has(found, ["one", "two"]), has("A", ["192.0.2.9"], false, "b.sites.test")];
    expect(planZone([wants(type)], others)).toEqual(
      isInTheWay
        ? { changes: [], conflicts: [{ name: "a.sites.test", type, found: `${found} one, two` }] }
        : { changes: [{ wanted: wants(type), found: null }], conflicts: [] },
    );
  });

  it("names no more of another's record than 300 characters", () => {
    const { conflicts } = planZone([wants("TXT")], [has("TXT", ["x".repeat(5000)])]);
    expect(conflicts.map(({ found }) => found.length)).toEqual([300]);
  });

  it("begins with challenges and then corrections, as somebody waits for them, and removes last", () => {
    const [gone, wrong] = [has("A", ["192.0.2.8"], true, "gone.sites.test"), has("A", ["192.0.2.8"], true)];
    const added = wants("A", ["192.0.2.1"], "new.sites.test");
    const challenge = wants("TXT", ["proof"], "_acme-challenge.sites.test");
    expect(planZone([added, wants("A"), challenge], [gone, wrong]).changes).toEqual([
      { wanted: challenge, found: null },
      { wanted: wants("A"), found: wrong },
      { wanted: added, found: null },
      { wanted: null, found: gone },
    ]);
  });

  it("is empty once it has been applied", () => {
    fc.assert(
      fc.property(wanted, zones, (want, found) => {
        const after = applied(found, planZone(want, found).changes);
        expect(planZone(want, after).changes).toEqual([]);
      }),
    );
  });
});

it("a site has a record for each address of its host, and challenges of one name are one set", () => {
  const sets = wantedSets(
    [
      { hostname: "a.sites.test", ipv4: "192.0.2.1", ipv6: "2001:db8::1" },
      { hostname: "b.sites.test", ipv4: null, ipv6: null },
    ],
    [
      { name: "_acme-challenge.sites.test", value: "one" },
      { name: "_acme-challenge.sites.test", value: "two" },
    ],
    { proxied: false },
  );
  const proxied = wantedSets(
    [{ hostname: "a.sites.test", ipv4: "192.0.2.1", ipv6: null }],
    [{ name: "_acme-challenge.sites.test", value: "one" }],
    { proxied: true },
  );
  // A challenge is never answered by the provider's network.
  expect(proxied.map((one) => [one.type, one.proxied, one.ttlSeconds])).toEqual([
    ["A", true, 1],
    ["TXT", false, 60],
  ]);
  expect(sets.map(({ name: at, type, contents, ttlSeconds }) => [at, type, contents, ttlSeconds])).toEqual([
    ["a.sites.test", "A", ["192.0.2.1"], 60],
    ["a.sites.test", "AAAA", ["2001:db8::1"], 60],
    ["_acme-challenge.sites.test", "TXT", ["one", "two"], 60],
  ]);
});

it("a provider that is away is asked again after one minute, and then at least every five", () => {
  expect([1, 2, 3, 4, 40].map(retryMs)).toEqual([60_000, 120_000, 240_000, 300_000, 300_000]);
});

import { expect, it } from "vitest";
import { bundleFor, mayObtain } from "../../agent/ingress/certificates.ts";
import { formatId } from "../../protocol/ids.ts";

const wildcard = {
  name: "*.sites.example",
  chain: "CHAIN\n",
  key: "KEY\n",
  notAfter: "2026-04-01T00:00:00.000Z",
};
const now = new Date("2026-03-01T00:00:00Z");

it("a wildcard certificate serves names with exactly one label in its place", () => {
  for (const name of ["shop.sites.example", "SHOP.Sites.Example", "a--b.sites.example"])
    expect([name, bundleFor(name, [wildcard], now)]).toEqual([name, "CHAIN\nKEY\n"]);
  for (const name of [
    "",
    "sites.example",
    "a.b.sites.example",
    "shop.example",
    ".sites.example",
    "shop.sites.example.org",
  ])
    expect([name, bundleFor(name, [wildcard], now)]).toEqual([name, null]);
});

it("an expired certificate serves nothing, so that names obtain their own again", () => {
  expect(bundleFor("shop.sites.example", [wildcard], new Date(wildcard.notAfter))).toBe(null);
});

/** Sites of these names, one made each minute from this time on. */
function sitesFrom(time: Date, hostnames: readonly string[]): Record<string, { hostnames: string[] }> {
  const entries = hostnames.map((hostname, index) => [
    formatId("site", time.getTime() + index * 60_000, new Uint8Array(10)),
    { hostnames: [hostname] },
  ]);
  return Object.fromEntries(entries) as Record<string, { hostnames: string[] }>;
}

it("while a wildcard's first certificate is awaited, the first sites obtain their own, and so do those of before and custom domains", () => {
  const before = sitesFrom(new Date(now.getTime() - 86_400_000), ["old.sites.example"]);
  const names = ["a", "b", "c", "d"].map((label) => `${label}.sites.example`);
  const other = sitesFrom(new Date(now.getTime() + 86_400_000), ["shop.example", "*.shop.example"]);
  const sites = { ...other, ...sitesFrom(now, names), ...before };
  const awaited = { name: "*.sites.example", since: now.toISOString(), own: 2 };
  const kept = { certificates: [], awaited };
  const asked = ["old.sites.example", ...names, "shop.example", "*.shop.example", "none.sites.example"];
  expect(asked.filter((name) => mayObtain(name, sites, kept, now))).toEqual([
    "old.sites.example",
    "a.sites.example",
    "b.sites.example",
    "shop.example",
  ]);
  // It has come.
  const come = { certificates: [wildcard], awaited: null };
  expect(asked.filter((name) => mayObtain(name, sites, come, now))).toEqual(["shop.example"]);
});

import { expect, it } from "vitest";
import { bundleFor } from "../../agent/ingress/certificates.ts";

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

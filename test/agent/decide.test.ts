import { expect, it } from "vitest";
import { decide } from "../../agent/ingress/decide.ts";
import type { HostIngressRules } from "../../protocol/api/ingress.ts";

const site = { hostnames: ["shop.sites.example", "www.example.com", "example.com"], targets: [] };

async function locationOf(
  hostname: string,
  rules: HostIngressRules,
  of: Parameters<typeof decide>[2] = site,
): Promise<string | null> {
  const asked = {
    hostname,
    host: hostname,
    uri: "/a?b=c",
    isHttps: true,
    address: "192.0.2.1",
    authorization: "",
    cookie: "",
    bodyBytes: 0,
  };
  const decision = await decide(asked, rules, of, () => Promise.resolve(true));
  return "status" in decision ? (decision.headers["Location"] ?? null) : null;
}

it("a domain that redirects leads to its pair with path and query; the pair and other names stay", async () => {
  const rules = { redirectDomains: { "www.example.com": "example.com" } };
  expect(await locationOf("www.example.com", rules)).toBe("https://example.com/a?b=c");
  expect(await locationOf("example.com", rules)).toBeNull();
  expect(await locationOf("shop.sites.example", rules)).toBeNull();
});

it("the primary domain precedes a pair, whichever way that leads, so that nobody is sent in circles", async () => {
  const rules = {
    primaryDomain: "www.example.com",
    redirectDomains: { "www.example.com": "example.com" },
  };
  expect(await locationOf("www.example.com", rules)).toBeNull();
  for (const name of ["example.com", "shop.sites.example"])
    expect(await locationOf(name, rules)).toBe("https://www.example.com/a?b=c");
});

it("names below a wildcard are served for themselves, unless the wildcard redirects", async () => {
  const wild = { ...site, hostnames: [...site.hostnames, "*.shop.example"] };
  const primary = { primaryDomain: "www.example.com" };
  expect(await locationOf("a.shop.example", primary, wild)).toBeNull();
  const rules = { ...primary, redirectDomains: { "*.shop.example": "example.com" } };
  expect(await locationOf("a.shop.example", rules, wild)).toBe("https://example.com/a?b=c");
});

it("nobody is redirected to a name that the site does not have", async () => {
  const rules = { primaryDomain: "gone.example", redirectDomains: { "www.example.com": "lost.example" } };
  expect(await locationOf("www.example.com", rules)).toBeNull();
});

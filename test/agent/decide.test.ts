import { expect, it } from "vitest";
import { decide } from "../../agent/ingress/decide.ts";
import type { HostIngressRules } from "../../protocol/api/ingress.ts";

const site = { hostnames: ["shop.sites.example", "www.example.com", "example.com"], targets: [] };

const askedFor = (hostname: string, isHttps = true) => ({
  hostname,
  host: hostname,
  uri: "/a?b=c",
  isHttps,
  address: "192.0.2.1",
  authorization: "",
  cookie: "",
  bodyBytes: 0,
});

async function locationOf(
  hostname: string,
  rules: HostIngressRules,
  of: Parameters<typeof decide>[2] = site,
): Promise<string | null> {
  const decision = await decide(askedFor(hostname), rules, of, () => Promise.resolve(true));
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

it("HSTS is in every answer by https, of the app and of the ingress, and in none by http", async () => {
  const basicAuth = { username: "team", hash: "x" };
  const others: [HostIngressRules, number][] = [
    [{}, 204],
    [{ primaryDomain: "www.example.com" }, 308],
    [{ redirects: [{ from: "/a", to: "/b" }] }, 308],
    [{ allow: ["203.0.113.0/24"] }, 403],
    [{ basicAuth }, 401],
    [{ maintenance: {} }, 503],
  ];
  for (const [rules, status] of others)
    for (const isHttps of [true, false]) {
      const hsts = { maxAgeSeconds: 60, includeSubdomains: true, preload: true };
      const asked = askedFor("example.com", isHttps);
      const decision = await decide(asked, { ...rules, hsts }, site, () => Promise.resolve(false));
      const [found, { headers }] = "status" in decision ? [decision.status, decision] : [204, decision.pass];
      expect([found, headers["Strict-Transport-Security"]]).toEqual([
        status,
        isHttps ? "max-age=60; includeSubDomains; preload" : undefined,
      ]);
    }
});

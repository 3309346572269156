import { expect, it } from "vitest";
import type { SiteHealth } from "../../protocol/api/running.ts";
import { siteChecks, type SiteProbed } from "../../protocol/api/diagnosis.ts";
import { wellContainer } from "../support/site-container.ts";
import { diagnose, type SiteFacts } from "../../worker/domain/diagnosis.ts";

const container = { ...wellContainer, deploymentId: "dep_1" };
const health: SiteHealth = {
  route: "serving",
  hostnames: ["shop.sites.test"],
  containers: [container],
  diskFreeMb: 50_000,
};
const probed: SiteProbed = {
  reachable: true,
  status: 200,
  ttfbMs: 12,
  tls: true,
  error: null,
  requests: [],
};
const well: SiteFacts = {
  site: {
    id: "site_1",
    status: "RUNNING",
    port: 3000,
    hostId: "host_1",
    hostOffline: false,
    paidUntil: "2027-01-01T00:00:00.000Z",
    domains: [],
    currentDeployment: {
      id: "dep_1",
      number: 1,
      commit: null,
      commitMessage: null,
      finishedAt: "2026-01-01T00:00:00.000Z",
      error: null,
    },
    latestDeployment: { id: "dep_1", number: 1, status: "LIVE", error: null },
    url: "https://shop.sites.test",
  },
  unpaid: null,
  health,
  probes: [{ name: "shop.sites.test", probed }],
  changes: [],
};
const site = (change: Partial<SiteFacts["site"]>): SiteFacts => ({
  ...well,
  site: { ...well.site, ...change },
});
const on = (change: Partial<SiteHealth>): SiteFacts => ({ ...well, health: { ...health, ...change } });
const running = (change: Partial<typeof container>) => on({ containers: [{ ...container, ...change }] });
const seen = (change: Partial<SiteProbed>): SiteFacts => ({
  ...well,
  probes: [{ name: "shop.sites.test", probed: { ...probed, ...change } }],
});
const firstProblem = (facts: SiteFacts) => diagnose(facts).checks.find(({ status }) => status === "problem");

it("a site that is well passes every check, in the order in which a request would meet them", () => {
  const { healthy, summary, checks } = diagnose(well);
  expect([healthy, summary]).toEqual([true, "No problem was found."]);
  expect(checks.map(({ check }) => check)).toEqual(siteChecks);
  expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
});

it.each<[check: string, facts: SiteFacts, finding: RegExp]>([
  ["invoice", site({ status: "PENDING", hostId: null }), /never been paid for/],
  [
    "invoice",
    {
      ...site({ status: "SUSPENDED" }),
      unpaid: { id: "invoice_1", token: "inv_1", dueAt: "2026-01-01T00:00:00.000Z" },
    },
    /paid term is over/,
  ],
  ["invoice", site({ status: "SUSPENDED" }), /account is suspended/],
  ["host", site({ hostOffline: true }), /not connected/],
  ["deployment", site({ status: "STOPPED" }), /was stopped/],
  [
    "deployment",
    site({ latestDeployment: { id: "dep_2", number: 2, status: "FAILED", error: "The build failed." } }),
    /the version before it is in service: The build failed/,
  ],
  ["container", running({ running: false, exitCode: 3, probe: null, listens: [] }), /exit code 3/],
  ["container", running({ running: false, outOfMemory: true, exitCode: 137, probe: null }), /more memory/],
  ["container", running({ restarts: 4 }), /restarted 4 times/],
  ["container", on({ containers: [] }), /No container/],
  ["port", running({ listens: [{ port: 8080, loopbackOnly: false }] }), /listens on 8080/],
  ["port", running({ listens: [{ port: 3000, loopbackOnly: true }] }), /127\.0\.0\.1:3000 only/],
  [
    "health",
    running({ probe: { port: 3000, path: "/up", isHealthy: false, answer: "answers 500", durationMs: 9 } }),
    /\/up of replica 1: it answers 500/,
  ],
  ["route", on({ route: "none" }), /routes no name/],
  ["route", on({ hostnames: ["other.test"] }), /does not route shop\.sites\.test/],
  ["dns", seen({ reachable: false, status: null, error: "no answer within 10 s" }), /cannot be reached/],
  ["certificate", seen({ reachable: false, status: null, error: "certificate has expired" }), /expired/],
  ["disk", on({ diskFreeMb: 100 }), /only 100 MB/],
])("a problem with the %s is the first that is found", (check, facts, finding) => {
  const found = firstProblem(facts);
  expect([found?.check, found?.finding]).toEqual([check, expect.stringMatching(finding)]);
  expect(diagnose(facts)).toMatchObject({ healthy: false, summary: found?.finding });
});

it("what can be mended comes with the request that mends it", () => {
  expect(firstProblem(site({ status: "STOPPED" }))?.fixes).toEqual([
    { summary: "Start the site.", operation: "patchSite", input: { id: "site_1", action: "start" } },
  ]);
  expect(firstProblem(running({ listens: [{ port: 8080, loopbackOnly: false }] }))?.fixes).toMatchObject([
    { operation: "patchSite", input: { settings: { port: 8080 } } },
  ]);
  const unpaid = { id: "invoice_1", token: "inv_secret", dueAt: "2026-02-01T00:00:00.000Z" };
  const owing = diagnose({ ...site({ status: "SUSPENDED" }), unpaid });
  expect(owing.checks[0]).toMatchObject({ fixes: [{ operation: "getInvoice", input: { id: "invoice_1" } }] });
});

it("what only a silent host knows is unknown, and no problem by itself", () => {
  const { healthy, summary, checks } = diagnose({ ...well, health: "The host is offline." });
  expect([healthy, summary]).toEqual([
    true,
    "No problem was found; not checked: host, container, port, health, route, disk.",
  ]);
  expect(checks.find(({ check }) => check === "host")?.finding).toContain("offline");
});

it("a name of the host's own machine that does not answer from outside is no problem of the site's", () => {
  const local = site({ url: "http://shop.localhost:8080" });
  const probed = { ...well.probes[0]!.probed, reachable: false, status: null, error: "no such host" };
  const { checks } = diagnose({ ...local, probes: [{ name: "shop.localhost", probed }] });
  expect(checks.find(({ check }) => check === "dns")).toMatchObject({ status: "unknown" });
});

import { expect, it } from "vitest";
import type { SiteHealth } from "../../protocol/api/running.ts";
import type { Domain } from "../../protocol/api/domains.ts";
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
  databases: [],
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
const linked = (change: Partial<SiteFacts["databases"][number]>): SiteFacts => ({
  ...well,
  databases: [{ id: "db_1", name: "shop-data", status: "RUNNING", error: null, invoiceId: null, ...change }],
});
const unpaid = { id: "invoice_1", token: "inv_1", dueAt: "2026-02-01T00:00:00.000Z" };
const failed = { id: "dep_2", number: 2, status: "FAILED", error: null } as const;
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
    /paid term has ended/,
  ],
  ["invoice", site({ status: "SUSPENDED" }), /account is suspended/],
  ["host", site({ hostOffline: true }), /not connected/],
  [
    "database",
    {
      ...site({ status: "FAILED", currentDeployment: null, latestDeployment: failed }),
      databases: linked({ status: "PENDING" }).databases,
    },
    /shop-data is not paid for/,
  ],
  ["deployment", site({ status: "STOPPED" }), /was stopped/],
  [
    "deployment",
    site({ latestDeployment: { id: "dep_2", number: 2, status: "FAILED", error: "The build failed." } }),
    /the previous version is in service: The build failed/,
  ],
  ["container", running({ running: false, exitCode: 3, probe: null, listens: [] }), /exit code 3/],
  ["container", running({ running: false, outOfMemory: true, exitCode: 137, probe: null }), /more memory/],
  ["container", running({ restarts: 1 }), /restarted once/],
  ["container", running({ restarts: 4 }), /restarted 4 times/],
  ["container", on({ containers: [] }), /no container/],
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

const current = { ...well.site.currentDeployment!, error: "It keeps exiting." };
const ended = {
  ...container,
  running: false,
  exitCode: 3,
  restarts: 5,
  finishedAt: "2026-01-02T00:00:00.000Z",
  listens: [],
  probe: null,
};
const former = { ...container, deploymentId: "dep_0", serves: false };
const answering = { port: 3000, path: null, isHealthy: true, answer: "answers 200", durationMs: 7 };
const named = (status: Domain["status"], type: "TXT" | "CNAME" = "TXT") => {
  const problems: Domain["problems"] =
    status === "ERROR" ? [{ code: "address_other", message: "shop.example leads elsewhere." }] : [];
  const domain: Domain = {
    id: "domain_1",
    domain: "shop.example",
    displayName: "shop.example",
    status,
    problems,
    record: { type, name: "_berth.shop.example", value: "proof" },
    target: "shop.sites.test",
    redirectTo: null,
    certificate: null,
    verifiedAt: null,
    checkedAt: null,
    nextCheckAt: null,
    releaseAt: null,
    createdAt: "2026-01-01T00:00:00.000Z",
  };
  return site({ domains: [domain] });
};
const outside = (...probes: [name: string, change?: Partial<SiteProbed>][]): SiteFacts => ({
  ...well,
  probes: probes.map(([name, change]) => ({ name, probed: { ...probed, ...change } })),
});
const away = { reachable: false, status: null, error: "no such host" };
const act = (action: string, summary: string) => ({
  summary,
  operation: "patchSite",
  input: { id: "site_1", action },
});
const restart = act("restart", "Restart the site.");

it.each<[check: string, status: string, facts: SiteFacts, finding: string, ...fixes: object[]]>([
  ["invoice", "ok", well, "Paid until 2027-01-01T00:00:00.000Z."],
  ["invoice", "ok", site({ paidUntil: null }), "Paid until an unknown time."],
  [
    "invoice",
    "ok",
    { ...well, unpaid },
    "Paid until 2027-01-01T00:00:00.000Z; the invoice invoice_1 is open, due 2026-02-01T00:00:00.000Z.",
  ],
  [
    "invoice",
    "problem",
    site({ status: "PENDING" }),
    "The site has never been paid for, so nothing was deployed.",
  ],
  [
    "invoice",
    "problem",
    { ...site({ status: "PENDING" }), unpaid },
    "The site has never been paid for, so nothing was deployed. The invoice invoice_1 is unpaid, due 2026-02-01T00:00:00.000Z.",
    { summary: "Pay the invoice.", operation: "getInvoice", input: { id: "invoice_1" } },
  ],
  ["host", "ok", well, "The host answers."],
  ["host", "unknown", site({ status: "PENDING", hostId: null }), "No host has the site yet."],
  ["host", "problem", site({ hostId: null }), "No host has the site."],
  ["deployment", "ok", well, "Deployment dep_1 is the version in service."],
  [
    "deployment",
    "unknown",
    site({ status: "DEPLOYING", currentDeployment: null, latestDeployment: null }),
    "The first deployment is in progress.",
  ],
  [
    "deployment",
    "problem",
    site({ status: "FAILED", currentDeployment: null, latestDeployment: null }),
    "No version of the site has run yet.",
    act("deploy", "Deploy the site."),
  ],
  [
    "deployment",
    "problem",
    site({ status: "FAILED", currentDeployment: null, latestDeployment: failed }),
    "The latest deployment failed: no reason is known",
    { summary: "See why it failed.", operation: "explainDeployment", input: { id: "dep_2" } },
  ],
  [
    "deployment",
    "problem",
    site({ currentDeployment: current, latestDeployment: { ...failed, id: "dep_1" } }),
    "The version in service: It keeps exiting.",
    act("restart", "Restart it."),
  ],
  [
    "deployment",
    "problem",
    site({ status: "FAILED", currentDeployment: current }),
    "The version that ran last: It keeps exiting.",
    act("start", "Start it."),
  ],
  [
    "container",
    "ok",
    { ...on({ containers: [] }), site: { ...well.site, status: "STOPPED" } },
    "None runs, because the site is stopped.",
  ],
  [
    "container",
    "ok",
    on({ containers: [{ ...ended, ...former, running: false }, container] }),
    "1 of 1 containers run, since 2026-01-01T00:00:00.000Z.",
  ],
  ["container", "problem", on({ containers: [former] }), "The site has no container in service."],
  [
    "container",
    "problem",
    on({ containers: [former, { ...ended, serves: false }] }),
    "The app is not running: it ended with exit code 3 at 2026-01-02T00:00:00.000Z after 5 restarts.",
    restart,
  ],
  [
    "container",
    "problem",
    { ...site({ status: "FAILED" }), health: { ...health, containers: [ended] } },
    "The app is not running: it ended with exit code 3 at 2026-01-02T00:00:00.000Z after 5 restarts.",
    act("start", "Start the site."),
  ],
  [
    "container",
    "problem",
    on({ containers: [container, { ...container, replica: 2, restarts: 4 }] }),
    "The app runs, and was restarted 4 times after it exited.",
  ],
  [
    "container",
    "problem",
    on({ containers: [container, { ...container, replica: 2, restarts: 1, outOfMemory: true }] }),
    "The app was killed for using more memory than its pack has, and runs again: choose a larger pack.",
  ],
  ["port", "unknown", running({ running: false }), "No container runs."],
  ["port", "unknown", on({ containers: [{ ...former, listens: [] }] }), "No container runs."],
  [
    "port",
    "ok",
    on({ containers: [container, { ...former, listens: [] }, { ...ended, replica: 2 }] }),
    "It listens on port 3000.",
  ],
  [
    "port",
    "ok",
    running({ probe: { ...answering, port: 8080 }, listens: [{ port: 8080, loopbackOnly: false }] }),
    "It listens on port 8080.",
  ],
  ["port", "ok", running({ probe: null }), "It listens on port 3000."],
  [
    "port",
    "problem",
    running({ listens: [{ port: 9229, loopbackOnly: true }] }),
    "Nothing listens on port 3000.",
  ],
  ["health", "ok", running({ probe: answering }), "1 probed: answers 200 in 7 ms."],
  ["health", "unknown", running({ probe: null }), "No container could be probed."],
  [
    "health",
    "ok",
    on({
      containers: [
        { ...container, probe: answering },
        { ...former, probe: { ...answering, isHealthy: false } },
      ],
    }),
    "1 probed: answers 200 in 7 ms.",
  ],
  [
    "health",
    "problem",
    running({ probe: { ...answering, isHealthy: false, answer: "takes no connection" } }),
    "The health check of the port of replica 1: it takes no connection.",
    restart,
  ],
  ["route", "ok", well, "Visitors of shop.sites.test reach the containers."],
  [
    "route",
    "ok",
    { ...on({ route: "stopped" }), site: { ...well.site, status: "STOPPED" } },
    "Visitors get the page of a stopped site.",
  ],
  [
    "route",
    "problem",
    on({ route: "stopped" }),
    "Visitors get the page of a stopped site.",
    act("start", "Start the site."),
  ],
  ["route", "ok", named("PENDING_VERIFICATION"), "Visitors of shop.sites.test reach the containers."],
  ["route", "problem", named("ACTIVE"), "The host does not route shop.example to the site yet."],
  ["dns", "ok", well, "shop.sites.test answers 200 in 12 ms."],
  ["dns", "unknown", outside(), "Nothing was requested from outside."],
  [
    "dns",
    "problem",
    named("PENDING_VERIFICATION"),
    "shop.example is not verified: set the TXT record _berth.shop.example to proof, then verify it.",
  ],
  [
    "dns",
    "problem",
    named("PENDING_VERIFICATION", "CNAME"),
    "shop.example is not verified: set the CNAME record _berth.shop.example to proof, then verify it.",
  ],
  ["dns", "problem", named("ERROR"), "shop.example leads elsewhere."],
  [
    "dns",
    "problem",
    { ...named("ERROR"), probes: outside(["shop.example", away]).probes },
    "shop.example cannot be reached from outside: no such host. shop.example leads elsewhere.",
  ],
  [
    "dns",
    "problem",
    outside(["localhost.example", away]),
    "localhost.example cannot be reached from outside: no such host.",
  ],
  [
    "dns",
    "problem",
    outside(["mylocalhost", away]),
    "mylocalhost cannot be reached from outside: no such host.",
  ],
  [
    "dns",
    "unknown",
    outside(["a.localhost", away], ["localhost", away]),
    "a.localhost, localhost exists only on the host's own machine.",
  ],
  [
    "certificate",
    "ok",
    outside(["shop.sites.test"], ["plain.test", { tls: false }]),
    "Valid for shop.sites.test.",
  ],
  ["database", "ok", well, "The site is linked to no database."],
  ["database", "ok", linked({}), "shop-data runs."],
  ["database", "unknown", linked({ status: "PROVISIONING" }), "The database shop-data is being created."],
  [
    "database",
    "problem",
    linked({ status: "PENDING", invoiceId: "invoice_2" }),
    "The database shop-data is not paid for, so it does not exist yet.",
    { summary: "Pay the invoice of shop-data.", operation: "getInvoice", input: { id: "invoice_2" } },
  ],
  [
    "database",
    "problem",
    linked({ status: "SUSPENDED", invoiceId: "invoice_2" }),
    "The database shop-data is suspended: its paid term has ended, or the account is suspended.",
    { summary: "Pay the invoice of shop-data.", operation: "getInvoice", input: { id: "invoice_2" } },
  ],
  [
    "database",
    "problem",
    linked({ status: "FAILED", error: "The image cannot be pulled." }),
    "The database shop-data failed: The image cannot be pulled.",
    { summary: "Start shop-data.", operation: "patchDatabase", input: { id: "db_1", action: "start" } },
  ],
  [
    "database",
    "problem",
    linked({ status: "STOPPED" }),
    "The database shop-data is stopped.",
    { summary: "Start shop-data.", operation: "patchDatabase", input: { id: "db_1", action: "start" } },
  ],
  ["certificate", "unknown", outside(["plain.test", { tls: false }]), "No answer over HTTPS."],
  ["disk", "unknown", on({ diskFreeMb: null }), "The host cannot see its disk."],
  [
    "disk",
    "problem",
    on({ diskFreeMb: 2047 }),
    "The host has only 2047 MB of free disk space: ask the operator.",
  ],
  ["disk", "ok", on({ diskFreeMb: 2048 }), "The host has 2 GB of free disk space."],
  ["changes", "ok", well, "Nothing was changed recently."],
  [
    "changes",
    "ok",
    {
      ...well,
      changes: [
        { operation: "patchSite", at: "2026-01-02", actor: "key", outcome: "done" },
        { operation: "deploySite", at: "2026-01-01", actor: "webhook", outcome: "conflict" },
      ],
    },
    "The latest changes: patchSite by key at 2026-01-02; deploySite by webhook at 2026-01-01 (conflict).",
  ],
])(
  "%s is %s where it is, in these words and with what mends it",
  (check, status, facts, finding, ...fixes) => {
    expect(diagnose(facts).checks.find((one) => one.check === check)).toEqual({
      check,
      status,
      finding,
      fixes,
    });
  },
);

it("what can be mended comes with the request that mends it", () => {
  expect(firstProblem(site({ status: "STOPPED" }))?.fixes).toEqual([
    { summary: "Start the site.", operation: "patchSite", input: { id: "site_1", action: "start" } },
  ]);
  expect(firstProblem(running({ listens: [{ port: 8080, loopbackOnly: false }] }))?.fixes).toMatchObject([
    { operation: "patchSite", input: { settings: { port: 8080 } } },
  ]);
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

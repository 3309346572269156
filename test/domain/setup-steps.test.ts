import { expect, it } from "vitest";
import { setupOf, type SetupFacts } from "../../worker/domain/setup-steps.ts";

const at = "2026-11-21T12:00:00.000Z";
const ready: SetupFacts = {
  version: "1",
  agentVersion: null,
  siteUrl: "https://berth.example",
  webhookHost: "https://berth.example",
  sitesOrigin: "https://sites.example",
  signUp: "open",
  signInWithGitHub: false,
  dns: {
    domain: "sites.example",
    provider: "cloudflare",
    recordCount: 1,
    comparedAt: at,
    error: null,
    errorSince: null,
    conflicts: [],
    certificate: {
      name: "*.sites.example",
      issuer: "CA",
      notBefore: at,
      notAfter: at,
      renewAt: at,
      step: null,
      error: null,
      errorSince: null,
      nextAttemptAt: null,
    },
  },
  mail: { configured: true, from: null },
  payments: { processor: "stripe", live: true, lastEventAt: at, eventsReadAt: at },
  backupStore: { error: null },
  assistant: { model: "m" },
  secrets: { keyId: "a", oldKeyIds: [], underOldKeys: [], tokenKey: true, tokensUnderOldKeys: false },
  now: new Date(at),
  timerRanAt: new Date(at),
  hostsUp: 2,
  sitePacks: 1,
};
const open = (facts: Partial<SetupFacts>) =>
  setupOf({ ...ready, ...facts })
    .filter(({ done }) => !done)
    .map(({ step }) => step);

it("an installation that is set up has nothing to do", () => {
  expect(open({})).toEqual([]);
  expect(setupOf(ready).every(({ todo }) => todo === null)).toBe(true);
});

it.each<[string, Partial<SetupFacts>]>([
  ["https", { siteUrl: "http://127.0.0.1:8787" }],
  ["timer", { timerRanAt: null }],
  ["timer", { timerRanAt: new Date(Date.parse(at) - 300_000) }],
  ["host", { hostsUp: 0 }],
  ["packs", { sitePacks: 0 }],
  ["dns", { dns: { ...ready.dns, error: "401" } }],
  ["dns", { dns: { ...ready.dns, conflicts: [{ name: "a", type: "A", found: "b" }] } }],
  ["dns", { dns: { ...ready.dns, provider: "none", certificate: null } }],
  ["certificate", { dns: { ...ready.dns, certificate: null } }],
  ["mail", { mail: { configured: false, from: null } }],
  ["payments", { payments: { ...ready.payments, live: false } }],
  ["payment_events", { payments: { ...ready.payments, lastEventAt: null } }],
  ["payment_events", { payments: { ...ready.payments, eventsReadAt: "2026-11-21T11:45:00.000Z" } }],
  ["backup_store", { backupStore: { error: "gone" } }],
  ["secrets", { secrets: { ...ready.secrets, oldKeyIds: ["b"] } }],
  ["secrets", { secrets: { ...ready.secrets, underOldKeys: [{ place: "site_env", rows: 1 }] } }],
  ["assistant", { assistant: { model: null } }],
])("%s is to be done, and says what", (step, facts) => {
  expect(open(facts)).toEqual([step]);
  expect(setupOf({ ...ready, ...facts }).find((one) => one.step === step)?.todo).toMatch(/\w+ \w+/);
});

it.each<Partial<SetupFacts>>([
  { timerRanAt: new Date(Date.parse(at) - 299_999) },
  // A record that leads all sites' names to the only host is enough.
  { dns: { ...ready.dns, provider: "none", certificate: null }, hostsUp: 1 },
  // The list was never read, which holds nothing up.
  { payments: { ...ready.payments, eventsReadAt: null } },
  { payments: { ...ready.payments, eventsReadAt: "2026-11-21T11:45:00.001Z" } },
])("nothing is to be done with %j", (facts) => expect(open(facts)).toEqual([]));

it("payments of the test processor have no events, and ask for Stripe; Stripe's in test mode ask for a live key", () => {
  const test: Partial<SetupFacts> = {
    payments: { processor: "test", live: false, lastEventAt: null, eventsReadAt: null },
  };
  const todoOf = (facts: Partial<SetupFacts>) =>
    setupOf({ ...ready, ...facts }).find(({ step }) => step === "payments")?.todo;
  expect(open(test)).toEqual(["payments"]);
  expect(todoOf(test)).toContain("Set PAYMENTS to stripe");
  expect(todoOf({ payments: { ...ready.payments, live: false } })).toContain("set a live one");
});

it("events that are not read are said to hold up what waits for payments, and since when", () => {
  const payments = { ...ready.payments, eventsReadAt: "2026-11-20T08:30:00.000Z" };
  const step = setupOf({ ...ready, payments }).find((one) => one.step === "payment_events");
  expect(step?.todo).toMatch(/since 2026-11-20 08:30 UTC.* nothing is voided, suspended or deleted/);
});

it("an older key is not said to be needless while API keys may have been created under it", () => {
  const todoOf = (tokenKey: boolean, tokensUnderOldKeys = true) =>
    setupOf({ ...ready, secrets: { ...ready.secrets, oldKeyIds: ["b"], tokenKey, tokensUnderOldKeys } }).find(
      ({ step }) => step === "secrets",
    )?.todo;
  expect(todoOf(false)).toMatch(
    /API keys .* stop working without them: set TOKEN_KEY to the older key, then remove/,
  );
  expect(todoOf(true)).toMatch(/created under one of them stop working without it: replace those, then/);
  expect(todoOf(true, false)).toBe("No stored value needs the older keys any more: remove SECRET_KEYS_OLD.");
});

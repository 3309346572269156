import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Certificate } from "../../protocol/agent/certificates.ts";
import type { ToAgent } from "../../protocol/agent/messages.ts";
import type { Domain } from "../../protocol/api/domains.ts";
import type { Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import { runDns } from "../../worker/cron.ts";
import type { Ctx } from "../../worker/ctx.ts";
import { issuedCertificates } from "../../worker/jobs/certificates/issued.ts";
import { createDomain } from "../../worker/services/domains/create.ts";
import { getDomain } from "../../worker/services/domains/get.ts";
import { lookAtDueDomains } from "../../worker/services/domains/look-due.ts";
import { removeDomain } from "../../worker/services/domains/remove.ts";
import { verifyDomain } from "../../worker/services/domains/verify.ts";
import { AcmeAuthority } from "../support/acme-authority/server.ts";
import { CloudflareServer } from "../support/cloudflare/server.ts";
import { answerFromZone, type Zone } from "../support/dns-zone.ts";
import {
  account,
  api,
  bindings,
  createSite,
  finish,
  readyAgent,
  runningSite,
  uniqueName,
  type Agent,
} from "./service.ts";

const day = 86_400_000;

let cloudflare: CloudflareServer;
let authority: AcmeAuthority;
let zone: Zone;
let ctx: Ctx;
let now: Date;
let hosts: Agent[];

/** The TXT records that Berth publishes at a name. */
const published = (name: string) =>
  cloudflare.records.flatMap((one) => (one.name === name ? one.content.replaceAll('"', "") : []));

/** What the internet sees: the customer's zone, whose CNAMEs lead into that of the sites. */
const seen = (): Zone => ({
  ...zone,
  ...Object.fromEntries(
    [...Map.groupBy(cloudflare.records, ({ name }) => name)].map(([name, records]) => [
      name,
      {
        A: records.filter(({ type }) => type === "A").map(({ content }) => content),
        TXT: records.filter(({ type }) => type === "TXT").map(({ content }) => content),
      },
    ]),
  ),
});

const contextFor = (): Ctx => {
  const made = contextOf(
    {
      ...bindings,
      SITES_ORIGIN: "https://sites.test",
      DNS_PROVIDER: "cloudflare",
      CLOUDFLARE_ZONE_ID: cloudflare.zoneId,
      CLOUDFLARE_API_TOKEN: cloudflare.token,
      ACME_DIRECTORY: authority.directoryUrl,
      DNS_ENDPOINTS: "https://resolver.test/query",
    } as typeof bindings,
    { type: "system" },
    (work) => void work,
  );
  return Object.defineProperty(made, "now", { value: () => now });
};

beforeEach(async () => {
  cloudflare = new CloudflareServer();
  authority = new AcmeAuthority();
  zone = {};
  hosts = [];
  now = new Date();
  authority.now = now;
  authority.lookUp = (name) => published(zone[name]?.CNAME?.[0] ?? name);
  await bindings.DB.batch(
    ["certificates", "acme_accounts", "dns_zones", "domains"].map((table) =>
      bindings.DB.prepare(`DELETE FROM ${table}`),
    ),
  );
  ctx = contextFor();
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    switch (url.hostname) {
      case "acme.test":
        return authority.fetch(request);
      case "resolver.test":
        return answerFromZone(seen(), url);
      default:
        return cloudflare.fetch(request);
    }
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const host of hosts) host.close();
});

/** The timer for so many minutes, domains excepted. */
async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    await runDns(ctx);
    now = new Date(now.getTime() + 60_000);
    authority.now = now;
  }
}

async function ready(): Promise<Agent> {
  const host = await readyAgent();
  hosts.push(host);
  return host;
}

/** As its owner does. */
const as = (accountId: string) =>
  Object.assign(contextFor(), { actor: { type: "session", accountId, sessionId: "ses_1" } });

async function runningOn(host: Agent) {
  const key = await account();
  const { siteId } = await runningSite(key, host);
  const row = await bindings.DB.prepare("SELECT account_id AS accountId, slug FROM sites WHERE id = ?")
    .bind(siteId)
    .first<{ accountId: string; slug: string }>();
  await bindings.DB.prepare("UPDATE hosts SET ipv4 = '192.0.2.1' WHERE id = ?").bind(host.hostId).run();
  return { key, siteId, target: `${row?.slug}.sites.test`, owner: as(row?.accountId ?? "") };
}
type Running = Awaited<ReturnType<typeof runningOn>>;

/** Sets the delegation and the address, as the owner of the name does. */
function point({ domain, record }: Domain, { target }: Running): void {
  const bare = domain.slice(2);
  zone[record.name] = { CNAME: [record.value] };
  zone[`berth-check.${bare}`] = { CNAME: [target] };
}

/** Some messages repeat it. @param before not this one */
const certificatesOf = async (host: Agent, name: string, before?: Certificate) => {
  for (;;) {
    const { certificates } = await host.next("certificates");
    const found = certificates.find((one) => one.name === name);
    if (found && found.chain !== before?.chain) return found;
  }
};

/** Answers the host's next question about the certificate. */
async function report(host: Agent, isValid: boolean) {
  const { requestId, question } = await host.next("ask");
  const certificate = {
    issuer: "Test Authority",
    notBefore: now.toISOString(),
    notAfter: new Date(now.getTime() + 90 * day).toISOString(),
    error: null,
    errorAt: null,
  };
  host.send({
    type: "answer",
    requestId,
    last: true,
    answer: {
      kind: "certificate",
      isServed: true,
      tls: true,
      isValid,
      certificate: isValid ? certificate : null,
    },
  });
  return question;
}

async function takeJob(host: Agent): Promise<Extract<ToAgent, { type: "job" }>> {
  const told = await host.next("job");
  await finish(host, told.job, told.attempt);
  return told;
}

const newWildcard = () => `*.${uniqueName("shop")}.example.com`;

describe("a wildcard domain", () => {
  it("is proved by a delegation, and its certificate reaches only the host that serves it", async () => {
    const host = await ready();
    const site = await runningOn(host);
    const other = await ready();
    const name = newWildcard();
    const made = await createDomain(site.owner, { id: site.siteId, domain: name });
    expect(made.record).toEqual({
      type: "CNAME",
      name: `_acme-challenge.${name.slice(2)}`,
      value: expect.stringMatching(/^[0-9a-f]{32}\._acme-challenge\.sites\.test$/),
    });
    const missing = await verifyDomain(site.owner, { id: site.siteId, name });
    expect(missing.problems[0]?.message).toBe(
      `There is no CNAME record at ${made.record.name} yet. Create it with the value ${made.record.value}, wait a few minutes, then verify again.`,
    );
    zone[made.record.name] = { CNAME: ["elsewhere.example.net"] };
    expect((await verifyDomain(site.owner, { id: site.siteId, name })).problems[0]?.message).toBe(
      `The CNAME record at ${made.record.name} has a different value, elsewhere.example.net. Set it to ${made.record.value}.`,
    );
    // The names below it lead nowhere yet.
    zone[made.record.name] = { CNAME: [made.record.value] };
    await minutes(1);
    expect(await verifyDomain(site.owner, { id: site.siteId, name })).toMatchObject({
      status: "ERROR",
      problems: [{ code: "address_missing", message: expect.stringContaining(`${name} has no address`) }],
    });
    expect((await takeJob(host)).job).toMatchObject({
      kind: "site.route",
      args: { hostnames: [expect.any(String), name] },
    });
    expect(authority.orders.map((order) => order.name)).toEqual(["*.sites.test"]);

    point(made, site);
    expect(await verifyDomain(site.owner, { id: site.siteId, name })).toMatchObject({
      status: "VERIFIED",
      problems: [{ code: "certificate_pending" }],
    });
    await minutes(5);
    const issued = await certificatesOf(host, name);
    expect(new X509Certificate(issued.chain).subjectAltName).toBe(`DNS:${name}`);
    expect(published(made.record.value)).toEqual([]);
    // As soon as the host has it, the domain is looked at.
    const looking = lookAtDueDomains(ctx);
    expect(await report(host, true)).toMatchObject({ siteId: site.siteId, hostname: name });
    await looking;
    expect(await getDomain(site.owner, { id: site.siteId, name })).toMatchObject({
      status: "ACTIVE",
      problems: [],
      certificate: { issuer: "Test Authority", error: null },
    });
    const sentTo = async ({ hostId }: Agent) =>
      (await issuedCertificates(ctx, hostId as Id<"host">)).map((one) => one.name);
    expect([await sentTo(host), await sentTo(other)]).toEqual([["*.sites.test", name], ["*.sites.test"]]);
  });

  it("keeps its certificate while the renewal fails, and says why", async () => {
    const host = await ready();
    const site = await runningOn(host);
    const name = newWildcard();
    const made = await createDomain(site.owner, { id: site.siteId, domain: name });
    await minutes(1);
    point(made, site);
    await verifyDomain(site.owner, { id: site.siteId, name });
    await minutes(5);
    const first = await certificatesOf(host, name);
    now = new Date(now.getTime() + 61 * day);
    authority.now = now;
    delete zone[made.record.name];
    await minutes(10);
    expect(await verifyDomain(site.owner, { id: site.siteId, name })).toMatchObject({
      status: "ERROR",
      problems: [{ code: "proof_missing" }],
    });
    point(made, site);
    const asking = verifyDomain(site.owner, { id: site.siteId, name });
    await report(host, true);
    expect((await asking).certificate?.error).toContain("did not accept the proof");
    await minutes(60);
    const second = await certificatesOf(host, name, first);
    expect(second.notAfter > first.notAfter).toBe(true);
    const again = verifyDomain(site.owner, { id: site.siteId, name });
    await report(host, true);
    expect(await again).toMatchObject({ status: "ACTIVE", certificate: { error: null } });
  });

  it("for which no certificate is issued says so, with the next attempt", async () => {
    const host = await ready();
    const site = await runningOn(host);
    const name = newWildcard();
    const made = await createDomain(site.owner, { id: site.siteId, domain: name });
    await minutes(1);
    point(made, site);
    await verifyDomain(site.owner, { id: site.siteId, name });
    authority.lookUp = () => [];
    await minutes(5);
    const { status, problems, certificate } = await verifyDomain(site.owner, { id: site.siteId, name });
    expect([status, problems[0]?.code]).toEqual(["ERROR", "certificate_failed"]);
    expect(problems[0]?.message).toMatch(
      /^No certificate was issued for \*\..* did not accept the proof: .* The next attempt is at \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/,
    );
    expect(certificate?.error).toContain("did not accept the proof");
  });

  it("of one account gets its place on a host among any number of another's, of which the rest say why they have none", async () => {
    const host = await ready();
    const [greedy, modest] = [await runningOn(host), await runningOn(host)];
    const bare = `${uniqueName("many")}.example.com`;
    const held = async ({ siteId }: Running, name: string, at: number) => {
      await bindings.DB.batch([
        bindings.DB.prepare(
          "INSERT INTO domains (id, site_id, name, challenge, created_at, verified_at) VALUES (?, ?, ?, 'x', 0, ?)",
        ).bind(`dom_${name}`, siteId, name, at),
        bindings.DB.prepare(
          "INSERT INTO certificates (id, chain, key_sealed, not_before, not_after, busy_until, next_at) VALUES (?, 'CHAIN', ?, ?, 4e12, 0, 4e12)",
          // The first one has just been renewed.
        ).bind(name, ctx.secrets.seal("KEY", `certificates.key:${name}`), at === 1 ? 400 : at),
      ]);
      return name;
    };
    for (let number = 1; number <= 110; number++) await held(greedy, `*.${number}.${bare}`, number);
    await held(modest, `*.modest.${bare}`, 500);
    const given = (await issuedCertificates(ctx, host.hostId as Id<"host">)).map(({ name }) => name);
    expect(given).toHaveLength(100);
    expect(given.slice(0, 2)).toEqual([`*.1.${bare}`, `*.modest.${bare}`]);
    expect(given.at(-1)).toBe(`*.99.${bare}`);

    zone[`berth-check.110.${bare}`] = { CNAME: [greedy.target] };
    zone[`_acme-challenge.110.${bare}`] = { CNAME: ["x"] };
    await minutes(1);
    const looking = verifyDomain(greedy.owner, { id: greedy.siteId, name: `*.110.${bare}` });
    await report(host, false);
    expect(await looking).toMatchObject({
      status: "ERROR",
      problems: [
        { code: "certificate_failed", message: expect.stringContaining("as many wildcards as it can") },
      ],
    });
  });

  it("that is removed takes its certificate with it, and another site needs a delegation of its own", async () => {
    const host = await ready();
    const [site, rival] = [await runningOn(host), await runningOn(host)];
    const name = newWildcard();
    const made = await createDomain(site.owner, { id: site.siteId, domain: name });
    const theirs = await createDomain(rival.owner, { id: rival.siteId, domain: name });
    expect(theirs.record.value).not.toBe(made.record.value);
    await minutes(1);
    point(made, site);
    await verifyDomain(site.owner, { id: site.siteId, name });
    expect((await verifyDomain(rival.owner, { id: rival.siteId, name })).problems[0]?.code).toBe(
      "proof_other",
    );
    await minutes(5);
    const first = await certificatesOf(host, name);
    await takeJob(host);
    await removeDomain(site.owner, { id: site.siteId, name });
    await minutes(1);
    const { results } = await bindings.DB.prepare("SELECT id FROM certificates").all();
    expect(results).toEqual([{ id: "*.sites.test" }]);
    expect((await verifyDomain(rival.owner, { id: rival.siteId, name })).verifiedAt).toBeNull();
    point(theirs, rival);
    expect((await verifyDomain(rival.owner, { id: rival.siteId, name })).verifiedAt).not.toBeNull();
    await minutes(5);
    expect((await certificatesOf(host, name, first)).chain).not.toBe(first.chain);
  });

  it("is refused where no DNS provider is configured", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const { status, body } = await api<{ issues: { message: string }[] }>(
      key,
      "POST",
      `/sites/${siteId}/domains`,
      { domain: "*.shop.example" },
    );
    expect([status, body.issues[0]?.message]).toEqual([
      400,
      "a wildcard needs a certificate by DNS-01, and this installation has no DNS provider: add each name separately",
    ]);
  });

  it("is no primary domain, and nothing redirects to it", async () => {
    const host = await ready();
    const site = await runningOn(host);
    const name = newWildcard();
    const made = await createDomain(site.owner, { id: site.siteId, domain: name });
    await minutes(1);
    point(made, site);
    await verifyDomain(site.owner, { id: site.siteId, name });
    const change = { settings: { ingress: { primaryDomain: name } } };
    expect((await api(site.key, "PATCH", `/sites/${site.siteId}`, change)).status).toBe(400);
    await expect(
      createDomain(site.owner, { id: site.siteId, domain: "one.example.com", redirectTo: name }),
    ).rejects.toThrow();
  });
});

import { eq } from "drizzle-orm";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Answer } from "../../protocol/agent/running.ts";
import type { Domain, DomainCertificate } from "../../protocol/api/domains.ts";
import { formatId, type Id } from "../../protocol/ids.ts";
import { contextOf } from "../../worker/compose.ts";
import { runDns } from "../../worker/cron.ts";
import { sites } from "../../worker/db/schema.ts";
import { addDomain } from "../../worker/services/domains/add.ts";
import { lookAtDueDomains } from "../../worker/services/domains/look-due.ts";
import { answerFromZone, type Zone } from "../support/dns-zone.ts";
import { clearAway, drain, foundOffline, hostFor, sql } from "./hosts-service.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finish,
  finishNext,
  operator,
  readyAgent,
  runningSite,
  site,
  uniqueName,
  type Agent,
} from "./service.ts";

const zone: Zone = {};
const broken: string[] = [];
/** What was asked of servers at other addresses than a resolver's. */
const requested: URL[] = [];
/** @param cdn names that a server elsewhere answers for */
function listen(cdn: readonly string[] = []) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const url = new URL(new Request(input).url);
    if (!cdn.includes(url.hostname)) return answerFromZone(zone, url, broken);
    requested.push(url);
    return new Response(null, { status: 308, headers: { Location: `https://${url.host}${url.pathname}` } });
  });
}
afterEach(() => {
  vi.restoreAllMocks();
  for (const name of Object.keys(zone)) delete zone[name];
  broken.length = requested.length = 0;
});

const dayMs = 86_400_000;
const newName = () => `${uniqueName("shop")}.example.com`;
const domainsPath = (siteId: string, name?: string, act?: string) =>
  ["/sites", siteId, "domains", name, act].filter((part) => part !== undefined).join("/");
const create = (key: string, siteId: string, body: object) =>
  api<Domain & { issues: { path: string; message: string }[]; reason: string }>(
    key,
    "POST",
    domainsPath(siteId),
    body,
  );
const show = async (key: string, siteId: string, name: string) =>
  (await api<Domain>(key, "GET", domainsPath(siteId, name))).body;
const verify = (key: string, siteId: string, name: string) =>
  api<Domain>(key, "POST", domainsPath(siteId, name, "verify"));
const renew = (key: string, siteId: string, name: string) =>
  api<Domain & { reason: string }>(key, "POST", domainsPath(siteId, name, "renew"));

/** Sets the record of ownership, and the address of the embedded installation, 127.0.0.1. */
function point({ domain, record }: Pick<Domain, "domain" | "record">, address: string | null = "127.0.0.1") {
  zone[record.name] = { TXT: [`"${record.value}"`] };
  if (address !== null) zone[domain] = { A: [address] };
}

/** The clock at this time, `sites` being the origin of the sites' own names, which Berth maintains if `hasZone`. */
async function look(at = new Date(), sites?: string, hasZone = false): Promise<void> {
  const provider = {
    DNS_PROVIDER: "cloudflare",
    CLOUDFLARE_ZONE_ID: "1".repeat(32),
    CLOUDFLARE_API_TOKEN: "token",
  };
  const settings = { ...bindings, ...(sites && { SITES_ORIGIN: sites }), ...(hasZone && provider) };
  const ctx = contextOf(settings, { type: "system" }, () => undefined);
  await lookAtDueDomains({ ...ctx, now: () => at });
}
/** Only this domain is due. */
const isDue = async (name: string) => {
  await bindings.DB.prepare("UPDATE domains SET next_check_at = 9e15").run();
  await bindings.DB.prepare("UPDATE domains SET next_check_at = NULL WHERE name = ?").bind(name).run();
};
const mailsAbout = async (name: string) =>
  (
    await bindings.DB.prepare("SELECT subject, text FROM mails WHERE text LIKE ? ORDER BY id")
      .bind(`%${name}%`)
      .all<{ subject: string; text: string }>()
  ).results;

const certificate: DomainCertificate = {
  issuer: "Test CA",
  notBefore: new Date(Date.now() - dayMs).toISOString(),
  notAfter: new Date(Date.now() + 89 * dayMs).toISOString(),
  error: null,
  errorAt: null,
};
type Report = Partial<Extract<Answer, { kind: "certificate" }>>;
async function report(on: Agent, answer: Report | string) {
  const { requestId, question } = await on.next("ask");
  on.send({
    type: "answer",
    requestId,
    last: true,
    answer:
      typeof answer === "string"
        ? { kind: "refused", error: answer }
        : { kind: "certificate", isServed: true, tls: true, isValid: true, certificate, ...answer },
  });
  return question;
}

/** The host's log of requests is asked for one path. */
async function logged(on: Agent, found: (path: string) => { host: string; path: string }[]) {
  const { requestId, question } = await on.next("ask");
  if (question.kind !== "requests") throw new Error(`The host was asked for ${question.kind}`);
  const request = {
    id: "1",
    at: new Date().toISOString(),
    method: "GET",
    query: null,
    status: 308,
    durationMs: 1,
    bytesIn: 0,
    bytesOut: 0,
    address: "104.16.1.1",
    referrer: null,
    userAgent: "berth-probe",
    deploymentId: null,
    replica: null,
    requestId: null,
    represents: 1,
  };
  const requests = found(question.filters.path ?? "").map((one) => ({ ...request, ...one }));
  on.send({ type: "answer", requestId, last: true, answer: { kind: "requests", requests } });
  return question;
}

/** A running site with a verified domain, whose route job is done. */
async function verified() {
  const key = await account();
  const host = await readyAgent();
  const { siteId } = await runningSite(key, host);
  const { body } = await create(key, siteId, { domain: newName() });
  listen();
  point(body);
  const asked = verify(key, siteId, body.domain);
  const job = host.next("job").then(async (told) => finish(host, told.job, told.attempt));
  await report(host, { isServed: false, isValid: false, certificate: null });
  await job;
  const seen = (await asked).body;
  return { key, host, siteId, domain: seen };
}

describe("the domains of a site", () => {
  it("are listed, shown by any form of their name, and removed", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const made = await create(key, siteId, { domain: "BÜCHER.example" });
    expect([made.status, made.body]).toMatchObject([
      201,
      {
        domain: "xn--bcher-kva.example",
        displayName: "bücher.example",
        status: "PENDING_VERIFICATION",
        problems: [{ code: "not_looked_at" }],
      },
    ]);
    expect((await create(key, siteId, { domain: "bücher.example" })).status).toBe(409);
    for (const name of ["xn--bcher-kva.example", encodeURIComponent("bücher.example")])
      expect(await show(key, siteId, name)).toEqual(made.body);
    expect((await api<{ data: Domain[] }>(key, "GET", domainsPath(siteId))).body.data).toEqual([made.body]);
    expect((await api(await account(), "GET", domainsPath(siteId, made.body.domain))).status).toBe(403);
    expect((await api(key, "GET", domainsPath(siteId, "other.example"))).status).toBe(404);
    expect((await api(key, "DELETE", domainsPath(siteId, made.body.domain))).body).toEqual({
      domain: made.body.domain,
      removed: true,
    });
    expect((await api(key, "DELETE", domainsPath(siteId, made.body.domain))).status).toBe(404);
  });

  it("are none that nobody can own alone, and none of the installation's", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    for (const [domain, reason] of [
      ["co.uk", "anybody"],
      ["github.io", "anybody"],
      ["a.localhost", "service itself"],
      ["*.shop.example", "DNS-01"],
      ["a b.com", "a domain name"],
    ] as const)
      expect([domain, (await create(key, siteId, { domain })).body.issues[0]?.message]).toEqual([
        domain,
        expect.stringContaining(reason),
      ]);
    for (const redirectTo of ["unknown.example", "self.example"])
      expect((await create(key, siteId, { domain: "self.example", redirectTo })).body.issues[0]?.path).toBe(
        "redirectTo",
      );
    expect((await create(key, siteId, { domain: "sub.self.example", pair: true })).body.issues[0]?.path).toBe(
      "pair",
    );
  });

  it("are added as a pair, which one record proves and of which one redirects to the other", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const apex = `${uniqueName("pair")}.com`;
    const { record } = (await create(key, siteId, { domain: apex, pair: true })).body;
    const www = await show(key, siteId, `www.${apex}`);
    expect(www).toMatchObject({ redirectTo: apex, status: "PENDING_VERIFICATION" });
    zone[record.name] = { TXT: [record.value] };
    listen();
    for (const name of [apex, `www.${apex}`])
      expect((await verify(key, siteId, name)).body.verifiedAt).not.toBeNull();
    await api(key, "DELETE", domainsPath(siteId, apex));
    expect((await show(key, siteId, `www.${apex}`)).redirectTo).toBeNull();
  });

  it("are added as a pair or not at all, where the other one is added at the same moment", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const apex = `${uniqueName("pair")}.com`;
    const { db } = contextOf(bindings, { type: "system" }, () => undefined);
    const [row] = await db
      .select()
      .from(sites)
      .where(eq(sites.id, siteId as Id<"site">));
    const actor = {
      type: "key",
      keyId: formatId("key", 1, new Uint8Array(10)),
      role: "user",
      plan: "free",
    } as const;
    const ctx = contextOf(bindings, { ...actor, accountId: row!.accountId }, () => undefined);
    await create(key, siteId, { domain: `www.${apex}` });
    const adding = addDomain(ctx, row!, { domain: apex, pair: true }, []);
    await expect(adding).rejects.toMatchObject({ code: "conflict" });
    expect((await site(key, siteId)).domains.map(({ domain }) => domain)).toEqual([`www.${apex}`]);
  });

  it("are proved by the record of the name without www, whichever of a pair was named, and that record is told", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const apex = `${uniqueName("pair")}.com`;
    const made = (await create(key, siteId, { domain: `www.${apex}`, pair: true })).body;
    expect(made.record.name).toBe(`_berth-challenge.${apex}`);
    expect((await show(key, siteId, apex)).record).toEqual(made.record);
    listen();
    // A record of the www name's own proves it too; what else is there is not what is wrong.
    zone[`_berth-challenge.www.${apex}`] = { TXT: ["berth-verify=another"] };
    expect((await verify(key, siteId, `www.${apex}`)).body.problems[0]).toEqual({
      code: "proof_missing",
      message: expect.stringContaining(`There is no TXT record at _berth-challenge.${apex} yet`),
    });
    zone[`_berth-challenge.www.${apex}`] = { TXT: [made.record.value] };
    expect((await verify(key, siteId, `www.${apex}`)).body.verifiedAt).not.toBeNull();
    zone[made.record.name] = { TXT: [made.record.value] };
    expect((await verify(key, siteId, apex)).body.verifiedAt).not.toBeNull();
  });

  it("that are added one after the other share that record, and no pair changes one that is there", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const apex = `${uniqueName("pair")}.com`;
    const www = (await create(key, siteId, { domain: `www.${apex}` })).body;
    expect(www.record.name).toBe(`_berth-challenge.www.${apex}`);
    const refused = await create(key, siteId, { domain: apex, pair: true });
    expect([refused.status, refused.body.reason]).toEqual([
      409,
      `www.${apex} is a domain of this site already. Add ${apex} alone, or remove www.${apex} first.`,
    ]);
    expect((await api<{ data: Domain[] }>(key, "GET", domainsPath(siteId))).body.data).toEqual([www]);
    const { record } = (await create(key, siteId, { domain: apex })).body;
    expect(record).toEqual({ ...www.record, name: `_berth-challenge.${apex}` });
    await api(key, "DELETE", domainsPath(siteId, `www.${apex}`));
    expect((await create(key, siteId, { domain: `www.${apex}` })).body.record).toEqual(record);
  });
});

it("a name to which its site redirects is refused as its domain, and a redirect to a domain of its own, where visitors would go in circles", async () => {
  const key = await account();
  const { siteId } = await createSite(key);
  const apex = `${uniqueName("circle")}.com`;
  const redirectTo = (to: string) =>
    api<{ issues: { path: string }[] }>(key, "PATCH", `/sites/${siteId}`, {
      settings: { ingress: { redirects: [{ from: "/", match: "prefix", to }] } },
    });
  expect((await redirectTo(`https://www.${apex}/`)).status).toBe(200);
  for (const body of [{ domain: `www.${apex}` }, { domain: apex, pair: true }]) {
    const refused = await create(key, siteId, body);
    expect([refused.status, refused.body.reason]).toEqual([
      409,
      `The site redirects / to https://www.${apex}/, which would lead back to itself with this domain. Remove or change the redirect first.`,
    ]);
  }
  expect((await create(key, siteId, { domain: apex })).status).toBe(201);
  expect((await redirectTo(`https://${apex}/`)).body.issues[0]?.path).toBe("settings.ingress.redirects.0");
  expect((await redirectTo("https://elsewhere.example/")).status).toBe(200);
  expect((await create(key, siteId, { domain: `www.${apex}` })).status).toBe(201);
});

describe("a domain", () => {
  it("is VERIFIED while its host takes it up, and ACTIVE when the certificate is served", async () => {
    const { key, host, siteId, domain } = await verified();
    expect(domain).toMatchObject({ status: "VERIFIED", problems: [{ code: "route_pending" }] });
    await isDue(domain.domain);
    const looking = look();
    expect(await report(host, {})).toMatchObject({ kind: "certificate", siteId, hostname: domain.domain });
    await looking;
    const active = await show(key, siteId, domain.domain);
    expect(active).toMatchObject({ status: "ACTIVE", problems: [], certificate });
    expect(Date.parse(active.nextCheckAt ?? "") - Date.parse(active.checkedAt ?? "")).toBe(6 * 3_600_000);
    host.close();
  });

  it("of a site that no host has yet waits for its deployment, and says so", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    const { body } = await create(key, siteId, { domain: newName() });
    listen();
    point(body);
    expect((await verify(key, siteId, body.domain)).body).toMatchObject({
      status: "VERIFIED",
      problems: [{ code: "site_not_placed", message: expect.stringContaining("has not been deployed yet") }],
      certificate: null,
    });
  });

  it("is ACTIVE without a certificate where the host serves plain HTTP", async () => {
    const { key, host, siteId, domain } = await verified();
    const asked = verify(key, siteId, domain.domain);
    await report(host, { tls: false, isValid: false, certificate: null });
    expect((await asked).body).toMatchObject({ status: "ACTIVE", certificate: null });
    host.close();
  });

  it("is ERROR with the certificate authority's own words where none is issued", async () => {
    const { key, host, siteId, domain } = await verified();
    const asked = verify(key, siteId, domain.domain);
    const said = "HTTP 403 urn:ietf:params:acme:error:rejectedIdentifier";
    const none = {
      issuer: null,
      notBefore: null,
      notAfter: null,
      error: said,
      errorAt: certificate.notBefore,
    };
    await report(host, { isValid: false, certificate: none });
    const { body } = await asked;
    expect(body).toMatchObject({
      status: "ERROR",
      certificate: none,
      problems: [{ code: "certificate_failed" }],
    });
    expect(body.problems[0]?.message).toContain(said);
    host.close();
  });

  it("stays in service while its host cannot be asked, and is looked at again soon", async () => {
    const { key, host, siteId, domain } = await verified();
    const first = verify(key, siteId, domain.domain);
    await report(host, {});
    expect((await first).body.status).toBe("ACTIVE");
    const second = verify(key, siteId, domain.domain);
    await report(host, "It is busy.");
    const { body } = await second;
    expect(body).toMatchObject({ status: "ACTIVE", problems: [{ code: "host_unreachable" }] });
    expect(Date.parse(body.nextCheckAt ?? "")).toBeLessThan(Date.now() + 10 * 60_000);
    host.close();
  });

  it("that leads elsewhere is ERROR, and nobody is asked for its certificate", async () => {
    const { key, host, siteId, domain } = await verified();
    zone[domain.domain] = { A: ["192.0.2.1"], AAAA: ["2001:db8::1"] };
    const { body } = await verify(key, siteId, domain.domain);
    expect(body).toMatchObject({
      status: "ERROR",
      problems: [{ code: "address_other" }, { code: "address_other_ipv6" }],
      releaseAt: null,
    });
    expect(body.problems[0]?.message).toContain(`${domain.domain} has A 192.0.2.1, it should be CNAME`);
    host.close();
  });

  it("whose addresses are its owner's CDN's is ACTIVE where a request by way of that reaches the host, also without its record", async () => {
    const { key, host, siteId, domain } = await verified();
    const name = domain.domain;
    zone[name] = { A: ["104.16.1.1"], AAAA: ["2606:4700::1"] };
    delete zone[domain.record.name];
    listen([name]);
    const asked = verify(key, siteId, name);
    const question = await logged(host, (path) => [{ host: name, path }]);
    expect(requested.map(({ origin, pathname }) => [origin, pathname])).toEqual([
      [`http://${name}`, question.filters.path],
    ]);
    expect(await report(host, {})).toMatchObject({ kind: "certificate", hostname: name });
    expect((await asked).body).toMatchObject({ status: "ACTIVE", problems: [], releaseAt: null });
    host.close();
  });

  it("whose addresses are another server's is ERROR whatever that answers, unless the host has met the request", async () => {
    const { key, host, siteId, domain } = await verified();
    const name = domain.domain;
    zone[name] = { A: ["104.16.1.1"] };
    listen([name]);
    const asked = verify(key, siteId, name);
    await logged(host, (path) => [{ host: "other.example.com", path }]);
    await logged(host, () => []);
    expect((await asked).body).toMatchObject({ status: "ERROR", problems: [{ code: "proxied" }] });
    host.close();
  });

  it("that leads to a private address is ERROR, and nothing is sent there", async () => {
    const { key, host, siteId, domain } = await verified();
    const name = domain.domain;
    zone[name] = { A: ["104.16.1.1", "10.0.0.1"] };
    listen([name]);
    expect((await verify(key, siteId, name)).body.status).toBe("ERROR");
    expect(requested).toEqual([]);
    host.close();
  });

  it("keeps its status while no resolver answers", async () => {
    const { key, host, siteId, domain } = await verified();
    broken.push(domain.domain, domain.record.name);
    expect((await verify(key, siteId, domain.domain)).body).toMatchObject({
      status: "VERIFIED",
      problems: [{ code: "resolver_unavailable" }],
    });
    host.close();
  });

  it("whose CAA records, found upwards, forbid the issuer says so where sites have certificates", async () => {
    const { key, host, siteId, domain } = await verified();
    const slug = domain.target.replace(".localhost", "");
    zone[`${slug}.sites.example`] = { A: ["127.0.0.1"] };
    zone["example.com"] = { CAA: ['0 issue "other.example"'] };
    await isDue(domain.domain);
    await look(new Date(), "https://sites.example");
    const { status, problems } = await show(key, siteId, domain.domain);
    expect([status, problems.map(({ code }) => code)]).toEqual(["ERROR", ["caa_forbids"]]);
    expect(problems[0]?.message).toContain('example.com has CAA 0 issue "other.example"');
    // As Cloudflare's resolver shows it (RFC 3597).
    const bytes = Buffer.from("\0\u0005issueletsencrypt.org", "latin1");
    zone["example.com"] = {
      CAA: [`\\# ${bytes.length} ${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ")}`],
    };
    await isDue(domain.domain);
    const looking = look(new Date(), "https://sites.example");
    await report(host, {});
    await looking;
    expect((await show(key, siteId, domain.domain)).status).toBe("ACTIVE");
    host.close();
  });
});

it("a domain whose A record names the host that its site has left is looked at after the move, and its owner told once what to change", async () => {
  await clearAway();
  const key = await account();
  const old = await hostFor(2);
  const fresh = await hostFor(2);
  const place = (on: Agent, ipv4: string) => sql("UPDATE hosts SET ipv4 = ? WHERE id = ?", ipv4, on.hostId);
  await Promise.all([place(old, "192.0.2.1"), place(fresh, "198.51.100.2")]);
  const { siteId } = await runningSite(key, old);
  const { body } = await create(key, siteId, { domain: newName() });
  const name = body.domain;
  const target = `${body.target.replace(".localhost", "")}.sites.example`;
  listen();
  point(body, "192.0.2.1");
  // Resolvers may know it for a while after the move.
  zone[target] = { A: ["192.0.2.1"] };
  await isDue(name);
  const proving = look(new Date(), "https://sites.example", true);
  const routed = old.next("job").then(async (told) => finish(old, told.job, told.attempt));
  await report(old, {});
  await Promise.all([routed, proving]);
  expect((await show(key, siteId, name)).status).toBe("ACTIVE");

  await drain(old);
  await finishNext(fresh, deployResult);
  for (let times = 0; times < 2; times++) {
    await look(new Date(Date.now() + times * dayMs), "https://sites.example", true);
    const { status, problems } = await show(key, siteId, name);
    expect([status, problems]).toEqual([
      "ERROR",
      [
        {
          code: "address_other",
          message: `${name} has A 192.0.2.1, the address of a host that the site has left. It should be CNAME ${target} or A 198.51.100.2.`,
        },
      ],
    ]);
    const mails = await mailsAbout(name);
    expect(mails.map(({ subject }) => subject)).toEqual([expect.stringContaining("leads to a host that")]);
    expect(mails[0]?.text).toContain(problems[0]?.message);
  }
  zone[target] = { A: ["198.51.100.2"] };
  zone[name] = { CNAME: [target] };
  await isDue(name);
  const again = look(new Date(), "https://sites.example", true);
  await report(fresh, {});
  await again;
  expect((await show(key, siteId, name)).status).toBe("ACTIVE");
  old.close();
  fresh.close();
});

describe("a name that was lost", () => {
  it("is kept for a week, its owner is mailed once, and then it is released", async () => {
    const { key, host, siteId, domain } = await verified();
    const { domain: name, record } = domain;
    delete zone[record.name];
    zone[name] = { A: ["192.0.2.1"] };
    const began = Date.now();
    await isDue(name);
    await look(new Date(began));
    await isDue(name);
    await look(new Date(began + 3 * dayMs));
    const losing = await show(key, siteId, name);
    expect(losing).toMatchObject({ status: "ERROR", releaseAt: new Date(began + 7 * dayMs).toISOString() });
    expect(losing.problems[0]).toMatchObject({ code: "release_planned" });
    expect(await mailsAbout(name)).toHaveLength(1);
    await isDue(name);
    await look(new Date(began + 7 * dayMs));
    expect(await show(key, siteId, name)).toMatchObject({
      status: "PENDING_VERIFICATION",
      verifiedAt: null,
      problems: [{ code: "name_released" }],
    });
    expect((await mailsAbout(name)).map(({ subject }) => subject).toSorted()).toEqual([
      expect.stringContaining("no longer leads"),
      expect.stringContaining("was released"),
    ]);
    const told = await host.next("job");
    expect((told.job.args as { hostnames: string[] }).hostnames).not.toContain(name);
    await finish(host, told.job, told.attempt);
    host.close();
  });

  it("is kept when its address or its record is back in time, and by either alone", async () => {
    const { key, host, siteId, domain } = await verified();
    const { domain: name, record } = domain;
    delete zone[record.name];
    zone[name] = { A: ["192.0.2.1"] };
    const began = Date.now();
    await isDue(name);
    await look(new Date(began));
    point(domain, "192.0.2.1");
    await isDue(name);
    await look(new Date(began + dayMs));
    expect((await show(key, siteId, name)).releaseAt).toBeNull();
    delete zone[record.name];
    await isDue(name);
    await look(new Date(began + 20 * dayMs));
    expect(await show(key, siteId, name)).toMatchObject({
      status: "ERROR",
      problems: [{ code: "release_planned" }, {}],
    });
    host.close();
  });

  it("is taken over only by a proof of one's own, after deletion too", async () => {
    const { key, host, siteId, domain } = await verified();
    const { domain: name, record } = domain;
    const other = await account();
    const { siteId: otherId } = await createSite(other);
    const theirs = (await create(other, otherId, { domain: name })).body;
    expect((await verify(other, otherId, name)).body).toMatchObject({
      status: "PENDING_VERIFICATION",
      problems: [{ code: "proof_other" }],
    });
    zone[record.name] = { TXT: [record.value, theirs.record.value] };
    expect((await verify(other, otherId, name)).body.problems[0]).toMatchObject({ code: "name_held" });
    await api(key, "DELETE", domainsPath(siteId, name));
    zone[record.name] = { TXT: [record.value] };
    expect((await verify(other, otherId, name)).body.verifiedAt).toBeNull();
    // Added again, it needs a new record as well.
    const again = (await create(key, siteId, { domain: name })).body;
    expect(again.record.value).not.toBe(record.value);
    expect((await verify(key, siteId, name)).body.verifiedAt).toBeNull();
    zone[record.name] = { TXT: [theirs.record.value] };
    expect((await verify(other, otherId, name)).body.verifiedAt).not.toBeNull();
    host.close();
  });

  it("is told to its former owner by mail when another site has proved it", async () => {
    const { host, domain } = await verified();
    const { domain: name } = domain;
    const other = await account();
    const { siteId: otherId } = await createSite(other);
    const theirs = (await create(other, otherId, { domain: name })).body;
    point(theirs, null);
    expect((await verify(other, otherId, name)).body.verifiedAt).not.toBeNull();
    expect((await mailsAbout(name)).map(({ subject }) => subject)).toEqual([
      expect.stringContaining("served by another site"),
    ]);
    host.close();
  });
});

describe("the clock", () => {
  it("verifies what was added, in turns of the accounts, so many a round, and leaves more and more time", async () => {
    const [busy, other] = [await account(), await account()];
    const { siteId } = await createSite(busy);
    const { siteId: otherId } = await createSite(other);
    await bindings.DB.prepare("UPDATE domains SET next_check_at = 9e15").run();
    for (let number = 0; number < 30; number++) await create(busy, siteId, { domain: newName() });
    const { body } = await create(other, otherId, { domain: newName() });
    point(body, null);
    listen();
    const at = new Date(Date.now() + 2 * 60_000);
    await look(at);
    expect((await show(other, otherId, body.domain)).verifiedAt).not.toBeNull();
    const { data } = (await api<{ data: Domain[] }>(busy, "GET", domainsPath(siteId))).body;
    const seen = data.filter(({ checkedAt }) => checkedAt !== null);
    expect(seen).toHaveLength(24);
    await look(at);
    expect((await show(busy, siteId, data[29]?.domain ?? "")).checkedAt).not.toBeNull();
    const first = data[0]?.domain ?? "";
    const waits: number[] = [];
    for (let round = 0; round < 8; round++) {
      const { nextCheckAt, checkedAt } = await show(busy, siteId, first);
      waits.push((Date.parse(nextCheckAt ?? "") - Date.parse(checkedAt ?? "")) / 60_000);
      await isDue(first);
      await look(new Date(Date.parse(nextCheckAt ?? "")));
    }
    expect(waits).toEqual([1, 1, 2, 5, 10, 15, 30, 60]);
  });

  it("looks at what somebody waits for before what serves, however long that has been due, as after an outage", async () => {
    const key = await account();
    const { siteId } = await createSite(key);
    for (let number = 0; number < 30; number++) await create(key, siteId, { domain: newName() });
    await bindings.DB.prepare("UPDATE domains SET next_check_at = 9e15").run();
    await bindings.DB.prepare(
      "UPDATE domains SET verified_at = 1, state = 'ACTIVE', next_check_at = 1 WHERE site_id = ?",
    )
      .bind(siteId)
      .run();
    const { body } = await create(key, siteId, { domain: newName() });
    listen();
    await look(new Date(Date.now() + 2 * 60_000));
    expect((await show(key, siteId, body.domain)).checkedAt).not.toBeNull();
  });
});

describe("a certificate", () => {
  it("is obtained, is not renewed before it is due, and is when it is", async () => {
    const { key, host, siteId, domain } = await verified();
    const pending = await createSite(key);
    const { body: unproved } = await create(key, pending.siteId, { domain: newName() });
    expect((await renew(key, pending.siteId, unproved.domain)).body.reason).toContain("not verified");
    const first = renew(key, siteId, domain.domain);
    await report(host, {});
    expect(await first).toMatchObject({ status: 200, body: { status: "ACTIVE", certificate } });
    const early = renew(key, siteId, domain.domain);
    await report(host, {});
    expect((await early).body.reason).toContain("renewed automatically from");
    const due = { ...certificate, notAfter: new Date(Date.now() + dayMs / 4).toISOString() };
    const late = renew(key, siteId, domain.domain);
    await report(host, { certificate: due });
    const { status, body } = await late;
    expect([status, body.certificate]).toEqual([200, due]);
    host.close();
  });

  it("that cannot be renewed is told to the owner by mail weeks before it expires, once, and again when it is renewed", async () => {
    const { key, host, siteId, domain } = await verified();
    const name = domain.domain;
    const [begun, error] = [Date.now(), "HTTP 403 urn:ietf:params:acme:error:caa"];
    const of = (days: number) => ({
      ...certificate,
      notBefore: new Date(begun + (days - 90) * dayMs).toISOString(),
      notAfter: new Date(begun + days * dayMs).toISOString(),
    });
    const lookAfter = async (days: number, reported: DomainCertificate) => {
      await isDue(name);
      const looking = look(new Date(begun + days * dayMs));
      await report(host, { certificate: reported });
      await looking;
    };
    const subjects = async () => (await mailsAbout(name)).map(({ subject }) => subject);
    const failing = { ...of(90), error, errorAt: new Date(begun + 61 * dayMs).toISOString() };
    await lookAfter(1, of(90));
    await lookAfter(62, failing);
    expect(await subjects()).toEqual([]);
    await lookAfter(76, failing);
    await lookAfter(77, failing);
    const [mail, ...others] = await mailsAbout(name);
    expect([mail?.subject, others]).toEqual([`The certificate of ${name} could not be renewed`, []]);
    expect(mail?.text).toContain(error);
    expect((await show(key, siteId, name)).status).toBe("ACTIVE");
    await lookAfter(78, of(168));
    await lookAfter(79, of(168));
    expect((await subjects()).toSorted()).toEqual([
      `The certificate of ${name} could not be renewed`,
      `The certificate of ${name} has been renewed`,
    ]);
    // That which is renewed in time is not told.
    await lookAfter(168, of(200));
    expect(await subjects()).toHaveLength(2);
    host.close();
  });

  it("that CAA records keep from being renewed is told before it expires, with these records", async () => {
    const { host, domain } = await verified();
    const name = domain.domain;
    await isDue(name);
    const looking = look();
    await report(host, {});
    await looking;
    zone[`${domain.target.replace(".localhost", "")}.sites.example`] = { A: ["127.0.0.1"] };
    zone["example.com"] = { CAA: ['0 issue "other.example"'] };
    for (const days of [60, 80]) {
      await isDue(name);
      await look(new Date(Date.now() + days * dayMs), "https://sites.example");
      expect(
        (await mailsAbout(name)).map(({ text }) => text.includes('CAA 0 issue "other.example"')),
      ).toEqual(days === 80 ? [true] : []);
    }
    host.close();
  });

  it("that a host obtained comes to the host that its site moves to, before the site does, and goes with the name", async () => {
    await clearAway();
    const key = await account();
    const old = await hostFor(2);
    const { siteId } = await runningSite(key, old);
    const { body } = await create(key, siteId, { domain: newName() });
    const name = body.domain;
    listen();
    point(body);
    const obtained = { name, chain: "CHAIN", key: "PRIVATE", notAfter: certificate.notAfter ?? "" };
    const first = verify(key, siteId, name);
    const job = old.next("job").then(async (told) => finish(old, told.job, told.attempt));
    expect(await report(old, { obtained })).toMatchObject({ hostname: name, keptUntil: null });
    await job;
    expect((await first).body.status).toBe("ACTIVE");
    const rows = async () =>
      (await sql("SELECT chain, key_sealed AS sealed FROM certificates WHERE id = ?", name)).results;
    expect(await rows()).toEqual([{ chain: "CHAIN", sealed: expect.not.stringContaining("PRIVATE") }]);
    // What is kept is not sent again, nor shown.
    const second = verify(key, siteId, name);
    expect(await report(old, {})).toMatchObject({ keptUntil: obtained.notAfter });
    expect(JSON.stringify(await second)).not.toContain("CHAIN");

    const fresh = await hostFor(2);
    await drain(old);
    const moved = await fresh.next("job");
    expect((await fresh.next("certificates")).certificates).toEqual([obtained]);
    await finish(fresh, moved.job, moved.attempt, deployResult);
    expect((await site(key, siteId)).hostId).toBe(fresh.hostId);
    expect(old.waiting().filter(({ type }) => type === "certificates")).toEqual([]);

    await api(key, "DELETE", domainsPath(siteId, name));
    await runDns(contextOf(bindings, { type: "system" }, () => undefined));
    expect(await rows()).toEqual([]);
    old.close();
    fresh.close();
  });

  it("that a host obtained comes to the next one also where the first is dead", async () => {
    await clearAway();
    const key = await account();
    const dead = await hostFor(2);
    const { siteId } = await runningSite(key, dead);
    const { body } = await create(key, siteId, { domain: newName() });
    listen();
    point(body);
    const obtained = {
      name: body.domain,
      chain: "CHAIN",
      key: "PRIVATE",
      notAfter: certificate.notAfter ?? "",
    };
    const asked = verify(key, siteId, body.domain);
    const job = dead.next("job").then(async (told) => finish(dead, told.job, told.attempt));
    await report(dead, { obtained });
    await Promise.all([job, asked]);
    dead.close();
    await foundOffline(dead.hostId);
    const fresh = await hostFor(2);
    await api(await operator(), "DELETE", `/hosts/${dead.hostId}?force=1`);
    await fresh.next("job");
    expect((await fresh.next("certificates")).certificates).toEqual([obtained]);
    fresh.close();
  });
});

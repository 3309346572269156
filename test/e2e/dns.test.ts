import { createPrivateKey, X509Certificate } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import tls from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { acmeAuthority } from "../../worker/adapters/acme.ts";
import { powerDnsZone } from "../../worker/adapters/dns-zone/powerdns.ts";
import type { Zone } from "../../worker/adapters/dns-zone/zone.ts";
import { challengeName } from "../../worker/domain/certificates.ts";
import { planZone, wantedSets, type Challenge, type SiteAddress } from "../../worker/domain/dns-records.ts";
import { AcmeServer } from "../support/acme.ts";
import { PowerDns } from "../support/powerdns.ts";

const domain = "sites.example";

let powerDns: PowerDns;
let zone: Zone;
let acme: AcmeServer;
const resolver = new Resolver({ timeout: 1000, tries: 2 });

beforeAll(async () => {
  powerDns = await PowerDns.start(domain);
  resolver.setServers([`127.0.0.1:${powerDns.port}`]);
  zone = powerDnsZone({
    apiUrl: powerDns.apiUrl,
    apiKey: powerDns.apiKey,
    serverId: "localhost",
    zone: domain,
    domain,
    owner: `Managed by Berth for ${domain}`,
  });
  acme = await AcmeServer.start({ httpPort: 1, tlsPort: 1, dnsPort: powerDns.port });
  // As NODE_EXTRA_CA_CERTS would, which is read only when a process starts.
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), readFileSync(acme.caFile, "utf8")]);
});
afterAll(async () => {
  await acme.stop();
  await powerDns.stop();
});

async function reconcile(sites: SiteAddress[], challenges: Challenge[] = []) {
  const { changes, conflicts } = planZone(
    wantedSets(sites, challenges, { proxied: false }),
    await zone.list(),
  );
  if (changes.length > 0) await zone.apply(changes);
  return { changes: changes.length, conflicts };
}
const shop = { hostname: `shop.${domain}`, ipv4: "192.0.2.1", ipv6: "2001:db8::1" };

it("PowerDNS answers with a site's records, which follow its host and go with it", async () => {
  expect(await reconcile([shop])).toEqual({ changes: 2, conflicts: [] });
  expect(await resolver.resolve4(shop.hostname, { ttl: true })).toEqual([{ address: "192.0.2.1", ttl: 60 }]);
  expect(await resolver.resolve6(shop.hostname)).toEqual(["2001:db8::1"]);
  expect((await reconcile([shop])).changes).toBe(0);
  await reconcile([{ ...shop, ipv4: "192.0.2.2", ipv6: null }]);
  expect(await resolver.resolve4(shop.hostname)).toEqual(["192.0.2.2"]);
  await expect(resolver.resolve6(shop.hostname)).rejects.toThrow("ENODATA");
  await reconcile([]);
  await expect(resolver.resolve4(shop.hostname)).rejects.toThrow("ENOTFOUND");
});

it("records that somebody else created in the zone stay, also at a site's name", async () => {
  const others = [
    { name: `mail.${domain}.`, type: "A", records: [{ content: "203.0.113.1", disabled: false }] },
    { name: `shop.${domain}.`, type: "A", records: [{ content: "203.0.113.2", disabled: false }] },
    { name: `_acme-challenge.other.${domain}.`, type: "TXT", records: [{ content: '"x"', disabled: false }] },
  ].map((set) => ({ ...set, ttl: 300, changetype: "REPLACE" }));
  expect(await powerDns.request(`/zones/${domain}.`, "PATCH", { rrsets: others })).toBe(true);
  // Each change of the zone has a serial number of its own.
  const foreign = async () => (await zone.list()).filter(({ ours, type }) => !ours && type !== "SOA");
  const before = await foreign();
  const { conflicts } = await reconcile([
    shop,
    { hostname: `blog.${domain}`, ipv4: "192.0.2.3", ipv6: null },
  ]);
  expect(conflicts.map(({ name, type, found }) => [name, type, found])).toEqual([
    [shop.hostname, "A", "A 203.0.113.2"],
    [shop.hostname, "AAAA", "A 203.0.113.2"],
  ]);
  expect(await resolver.resolve4(`blog.${domain}`)).toEqual(["192.0.2.3"]);
  await reconcile([]);
  expect(await foreign()).toEqual(before);
  expect(await resolver.resolve4(shop.hostname)).toEqual(["203.0.113.2"]);
});

it("while PowerDNS is away the reason is a sentence, and afterwards the records follow", async () => {
  await powerDns.pause();
  await expect(zone.list()).rejects.toThrow(/^PowerDNS at 127\.0\.0\.1:\d+ could not be reached\.$/);
  await powerDns.resume();
  const back = { hostname: `back.${domain}`, ipv4: "192.0.2.4", ipv6: null };
  await reconcile([back]);
  expect(await resolver.resolve4(back.hostname)).toEqual(["192.0.2.4"]);
  await reconcile([]);
});

it("pebble issues the wildcard certificate for a TXT record in PowerDNS, and says why it does not", async () => {
  const authority = acmeAuthority(acme.directory);
  const name = `*.${domain}`;
  const accountKey = await authority.newKey();
  const url = await authority.register(accountKey, "operator@example.com");
  expect(await authority.register(accountKey, undefined)).toBe(url);
  const account = { key: accountKey, url };

  const refused = await authority.order(account, name);
  await authority.answer(account, refused);
  await expect.poll(() => authority.state(account, refused)).toMatchObject({ status: "invalid" });
  expect((await authority.state(account, refused)).reason).toMatch(/_acme-challenge\.sites\.example/);

  const order = await authority.order(account, name);
  await reconcile([], [{ name: challengeName(name), value: order.challengeValue }]);
  expect(await resolver.resolveTxt(challengeName(name))).toEqual([[order.challengeValue]]);
  await authority.answer(account, order);
  await expect.poll(async () => (await authority.state(account, order)).status).toBe("ready");
  const key = await authority.newKey();
  await authority.finalize(account, order, name, key);
  await expect.poll(async () => (await authority.state(account, order)).status).toBe("valid");
  const { chain, issuer, notAfter } = await authority.download(account, order);
  const leaf = new X509Certificate(chain);
  expect(leaf.subjectAltName).toBe(`DNS:${name}`);
  expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(issuer).toMatch(/^Pebble/);
  expect(notAfter.getTime()).toBe(Date.parse(leaf.validTo));
  await reconcile([]);
  await expect(resolver.resolveTxt(challengeName(name))).rejects.toThrow("ENOTFOUND");
});

import "reflect-metadata";
import { KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createEngine } from "../../agent/docker/client.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { certificateOf } from "../../agent/ingress/certificate.ts";
import { certificatesFileOf, writeCertificates } from "../../agent/ingress/certificates.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { caddyStorage, putObtained, readObtained } from "../../agent/ingress/obtained.ts";
import type { AwaitedCertificate, Certificate } from "../../protocol/agent/certificates.ts";
import { formatId } from "../../protocol/ids.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { acmeAuthority, type AcmeAccount } from "../../worker/adapters/acme.ts";
import { powerDnsZone } from "../../worker/adapters/dns-zone/powerdns.ts";
import type { Zone } from "../../worker/adapters/dns-zone/zone.ts";
import { challengeName, delegationName } from "../../worker/domain/certificates.ts";
import { planZone, wantedSets, type Challenge } from "../../worker/domain/dns-records.ts";
import { AcmeServer } from "../support/acme.ts";
import { answers, TestResponder } from "../support/ingress.ts";
import { PowerDns } from "../support/powerdns.ts";

// The parts of the way from a name to its visitor, all real: PowerDNS, pebble, the responder and Caddy.
const domain = "sites.example";
const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const agentId = `test${randomBytes(6).toString("hex")}`;
const addressKey = randomBytes(32).toString("base64url");
const resolver = new Resolver({ timeout: 1000, tries: 2 });

let powerDns: PowerDns;
let zone: Zone;
let acme: AcmeServer;
const trusted: string[] = [];
let responder: TestResponder;
let ingress: Ingress;
let settings: IngressSettings;
let tlsPort: number;
let containerId: string;
let account: AcmeAccount;
const issued: Certificate[] = [];
const server = http.createServer((request, response) => response.end(request.headers.host));
const target = () => ({
  containerId: "c",
  address: "127.0.0.1",
  port: (server.address() as AddressInfo).port,
});

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
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
  responder = await TestResponder.start();
  ingress = responder.openRoutes();
  const port = await freePort();
  tlsPort = await freePort();
  acme = await AcmeServer.start({ httpPort: port, tlsPort, dnsPort: powerDns.port });
  // As NODE_EXTRA_CA_CERTS would, which is read only when a process starts.
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), readFileSync(acme.caFile, "utf8")]);
  trusted.push(await acme.root());
  const authority = acmeAuthority(acme.directory);
  const key = await authority.newKey();
  account = { key, url: await authority.register(key, undefined) };
  settings = {
    address: "127.0.0.1",
    port,
    responderPort: responder.dnsPort,
    statusPort: responder.statusPort,
    tls: {
      port: tlsPort,
      directory: acme.directory,
      caPem: readFileSync(acme.caFile, "utf8"),
      addressKey,
    },
  };
  containerId = await startIngress(engine, ingressContainer(agentId, settings).spec);
  await answers(port, "unknown.example", 308);
});

afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(accessLogVolume(agentId));
  await engine.removeVolume(`berth-ingress-${agentId}`);
  await acme.stop();
  await powerDns.stop();
  await responder.stop();
  server.close();
});

async function reconcile(names: readonly string[], challenges: readonly Challenge[] = []): Promise<void> {
  const sites = names.map((hostname) => ({ hostname, ipv4: "127.0.0.1", ipv6: null }));
  const { changes } = planZone(wantedSets(sites, challenges, { proxied: false }), await zone.list());
  if (changes.length > 0) await zone.apply(changes);
}

/** @param publishedAt where the challenge is in the zone of the sites */
async function obtain(name: string, publishedAt: string): Promise<Certificate> {
  const authority = acmeAuthority(acme.directory);
  const order = await authority.order(account, name);
  await reconcile(hostnames, [{ name: publishedAt, value: order.challengeValue }]);
  await authority.answer(account, order);
  await expect.poll(async () => (await authority.state(account, order)).status).toBe("ready");
  const key = await authority.newKey();
  await authority.finalize(account, order, name, key);
  await expect.poll(async () => (await authority.state(account, order)).status).toBe("valid");
  const { chain, notAfter } = await authority.download(account, order);
  await reconcile(hostnames);
  const certificate = { name, chain, key, notAfter: notAfter.toISOString() };
  issued.push(certificate);
  receive(null);
  return certificate;
}

/** As the agent does when the control plane says what there is, and what is being issued. */
const receive = (awaited: AwaitedCertificate | null) =>
  writeCertificates(certificatesFileOf(responder.file), {
    addressKey,
    certificates: issued,
    awaited,
    place: null,
  });

/** As a visitor: by the name's address in DNS, trusting pebble's root alone. */
async function visit(
  hostname: string,
  known?: string,
): Promise<{ status: number; text: string; serial: string }> {
  const address = known ?? (await resolver.resolve4(hostname))[0] ?? "";
  return new Promise((resolve, reject) => {
    const options = { host: address, port: tlsPort, servername: hostname, ca: trusted, agent: false };
    https
      .get({ ...options, headers: { Host: hostname } }, (response) => {
        const { serialNumber: serial } = (response.socket as tls.TLSSocket).getPeerCertificate();
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, serial }));
      })
      .on("error", reject);
  });
}

/** A certificate that Caddy takes for one of its own, of which so many seconds have passed and are left. */
async function oldCertificate(name: string, passed: number, left: number): Promise<Certificate> {
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const notAfter = new Date(Date.now() + left * 1000);
  const made = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    notBefore: new Date(Date.now() - passed * 1000),
    notAfter,
    extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: name }])],
  });
  const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
  return { name, chain: `${made.toString("pem")}\n`, key, notAfter: notAfter.toISOString() };
}

const hostnames = Array.from({ length: 100 }, (_, index) => `site-${index}.${domain}`);

it("while the wildcard's certificate is awaited, the first sites are reached by https at once, and later ones spare the authority's limit", async () => {
  const since = new Date();
  const sites = ["first", "second", "third"].map((label, index) => ({
    id: formatId("site", since.getTime() + index, randomBytes(10)),
    name: `${label}.${domain}`,
  }));
  for (const { id, name } of sites) await ingress.route(id, [name], [target()]);
  const names = sites.map(({ name }) => name);
  await reconcile(names);
  receive({ name: `*.${domain}`, since: since.toISOString(), own: 2 });
  const [first = "", second = "", third = ""] = names;
  for (const name of [second, first]) {
    expect(await visit(name)).toMatchObject({ status: 200, text: name });
    expect(readObtained(await storage(), name)).not.toBe(null);
  }
  await expect(visit(third)).rejects.toThrow();
  expect(readObtained(await storage(), third)).toBe(null);
  for (const { id } of sites) await ingress.unroute(id);
});

const storage = async () => {
  const found = await caddyStorage(engine, agentId, acme.directory);
  if (!found) throw new Error("Caddy has no volume");
  return found;
};

it("a hundred new sites are reached by their names in DNS under one trusted certificate", async () => {
  const name = `*.${domain}`;
  await obtain(name, challengeName(name));
  for (const [index, hostname] of hostnames.entries())
    await ingress.route(`site_${index}`, [hostname], [target()]);
  const visits = await Promise.all(hostnames.map((one) => visit(one)));
  expect(visits.map(({ status, text }) => `${status} ${text}`)).toEqual(hostnames.map((one) => `200 ${one}`));
  expect(new Set(visits.map(({ serial }) => serial)).size).toBe(1);
});

it("a certificate of before the wildcard's is served until it would be renewed, and then the wildcard's", async () => {
  const name = `before.${domain}`;
  // Due when a third of its life is left, or fifty minutes: in six seconds.
  const before = await oldCertificate(name, 3600, 50 * 60 + 6);
  putObtained(await storage(), before);
  await ingress.route("site_before", [name], [target()]);
  // It could be renewed.
  await reconcile([...hostnames, name]);
  const [wildcard] = issued.splice(0);
  receive(null);
  trusted.push(before.chain);
  const first = await visit(name, "127.0.0.1");
  expect(first.serial).toBe(new X509Certificate(before.chain).serialNumber);
  issued.push(wildcard as Certificate);
  receive(null);
  const failures: unknown[] = [];
  await expect
    .poll(
      async () => {
        const found = await visit(name, "127.0.0.1").catch((error: unknown) => void failures.push(error));
        return found?.serial;
      },
      { timeout: 30_000 },
    )
    .toBe(new X509Certificate(wildcard?.chain ?? "").serialNumber);
  expect(failures).toEqual([]);
});

it("a custom wildcard is proved by its delegation, and served under its own certificate", async () => {
  const name = "*.shop.test";
  const delegated = delegationName(randomBytes(16).toString("hex"), domain);
  const records = [
    { name: "_acme-challenge.shop.test.", type: "CNAME", content: `${delegated}.` },
    { name: "*.shop.test.", type: "CNAME", content: `site-0.${domain}.` },
  ];
  await powerDns.request("/zones", "POST", {
    name: "shop.test.",
    kind: "Native",
    nameservers: ["ns.shop.test."],
    rrsets: records.map(({ content, ...set }) => ({
      ...set,
      ttl: 60,
      records: [{ content, disabled: false }],
    })),
  });
  await ingress.route("site_0", [`site-0.${domain}`, name], [target()]);
  const report = () =>
    certificateOf(
      { engine, ingress, agentId, settings },
      { siteId: "site_0", hostname: name, timeoutMs: 10_000 },
      new AbortController().signal,
    );
  // Before the control plane has sent it, the ingress obtains none for the names below.
  expect(await report()).toMatchObject({ isServed: true, isValid: false });
  await expect(visit("any.shop.test")).rejects.toThrow();
  await obtain(name, delegated);
  expect(await report()).toMatchObject({
    isValid: true,
    certificate: { issuer: expect.stringContaining("Pebble") },
  });
  for (const hostname of ["any.shop.test", "berth-check.shop.test"])
    expect(await visit(hostname)).toMatchObject({ status: 200, text: hostname });
  // What was published for the proof is gone.
  await expect(resolver.resolveTxt(delegated)).rejects.toThrow("ENOTFOUND");
});

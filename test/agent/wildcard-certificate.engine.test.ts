import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createEngine } from "../../agent/docker/client.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { certificateOf } from "../../agent/ingress/certificate.ts";
import { certificatesFileOf, writeCertificates } from "../../agent/ingress/certificates.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import type { Certificate } from "../../protocol/agent/messages.ts";
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
let root: string;
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
  root = await acme.root();
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
  writeCertificates(certificatesFileOf(responder.file), { addressKey, certificates: issued });
  return certificate;
}

/** As a visitor: by the name's address in DNS, trusting pebble's root alone. */
async function visit(hostname: string): Promise<{ status: number; text: string; serial: string }> {
  const [address = ""] = await resolver.resolve4(hostname);
  return new Promise((resolve, reject) => {
    const options = { host: address, port: tlsPort, servername: hostname, ca: root, agent: false };
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

const hostnames = Array.from({ length: 100 }, (_, index) => `site-${index}.${domain}`);

it("a hundred new sites are reached by their names in DNS under one trusted certificate", async () => {
  const name = `*.${domain}`;
  await obtain(name, challengeName(name));
  for (const [index, hostname] of hostnames.entries())
    await ingress.route(`site_${index}`, [hostname], [target()]);
  const visits = await Promise.all(hostnames.map(visit));
  expect(visits.map(({ status, text }) => `${status} ${text}`)).toEqual(hostnames.map((one) => `200 ${one}`));
  expect(new Set(visits.map(({ serial }) => serial)).size).toBe(1);
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

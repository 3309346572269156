import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { certificateOf } from "../../agent/ingress/certificate.ts";
import { ingressContainer, startIngress } from "../../agent/ingress/container.ts";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { AccessLog } from "../../agent/running/access-log.ts";
import { openRequestRecords } from "../../agent/running/request-records.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { AcmeServer } from "../support/acme.ts";
import { engine } from "../support/engine.ts";
import { answers, get, TestResponder } from "../support/ingress.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const good = "www.shop.example";
const refused = "www.refused.example";
const unreachable = "www.unreachable.example";

let acme: AcmeServer;
let responder: TestResponder;
let ingress: Ingress;
let settings: IngressSettings;
let containerId: string;
const server = http.createServer((_, response) => response.end("hello"));

beforeAll(async () => {
  responder = await TestResponder.start();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  ingress = responder.openRoutes();
  await ingress.route("site_1", [good, refused, unreachable], [target]);
  const [port, tlsPort] = [await freePort(), await freePort()];
  acme = await AcmeServer.start({ httpPort: port, tlsPort, refused: [refused] });
  settings = {
    address: "127.0.0.1",
    port,
    responderPort: responder.dnsPort,
    statusPort: responder.statusPort,
    tls: { port: tlsPort, directory: acme.directory, caPem: readFileSync(acme.caFile, "utf8") },
  };
  containerId = await startIngress(engine, ingressContainer(agentId, settings).spec);
  await answers(settings.port, "unknown.example", 308);
});

afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(accessLogVolume(agentId));
  await engine.removeVolume(`berth-ingress-${agentId}`);
  await acme.stop();
  await responder.stop();
  server.close();
});

const asked = (hostname: string, over: Partial<IngressSettings> = {}, siteId = "site_1") =>
  certificateOf(
    { engine, ingress, agentId, settings: { ...settings, ...over } },
    { siteId, hostname, timeoutMs: 25_000 },
    new AbortController().signal,
  );

it("the certificate of a name is obtained when it is asked for, and reported as it is served", async () => {
  const { certificate, ...report } = await asked(good);
  expect(report).toEqual({ isServed: true, tls: true, isValid: true });
  expect(certificate).toMatchObject({
    issuer: expect.stringContaining("Pebble"),
    error: null,
    errorAt: null,
  });
  const [from, until] = [Date.parse(certificate?.notBefore ?? ""), Date.parse(certificate?.notAfter ?? "")];
  expect(from).toBeLessThanOrEqual(Date.now());
  expect(until).toBeGreaterThan(Date.now());
  expect((await asked(good)).certificate).toEqual(certificate);
});

it("an issuer that only the operator knows is trusted only where the operator named it", async () => {
  const { directory: _directory, ...tls } = settings.tls ?? { port: 0 };
  const { isValid, certificate } = await asked(good, { tls });
  expect([isValid, certificate?.error]).toEqual([false, expect.stringContaining("browsers trust")]);
});

it("where none is issued, the certificate authority's own words are reported", async () => {
  const { certificate, ...report } = await asked(refused);
  expect(report).toEqual({ isServed: true, tls: true, isValid: false });
  expect(certificate).toMatchObject({ issuer: null, notAfter: null });
  expect(certificate?.error).toMatch(/^The certificate authority says: .*rejectedIdentifier/);
  expect(Date.parse(certificate?.errorAt ?? "")).toBeGreaterThan(Date.now() - 60_000);
});

it("a name that the site does not have is not asked for, nor is any without TLS", async () => {
  expect(await asked(good, {}, "site_2")).toEqual({
    isServed: false,
    tls: true,
    isValid: false,
    certificate: null,
  });
  expect(await asked(good, { tls: null })).toMatchObject({ isServed: true, tls: false, certificate: null });
});

it("a request as a certificate authority's by way of a CDN is in the site's log, by which the control plane knows that it came here", async () => {
  const path = "/.well-known/acme-challenge/berth-1";
  expect((await get(settings.port, good, { path })).status).toBe(308);
  const requests = openRequestRecords(join(temporaryFolder(), "requests.db"));
  const { signal } = new AbortController();
  await vi.waitFor(async () => {
    await new AccessLog({ engine, ingress, requests, agentId }).look(signal);
    expect(requests.before("site_1", { path }, null, 1)).toMatchObject([{ host: good, path, status: 308 }]);
  });
  requests.close();
});

it("where the certificate authority cannot be reached, nothing is reported as its words", async () => {
  await acme.stop();
  const { certificate, ...report } = await asked(unreachable);
  expect(report).toEqual({ isServed: true, tls: true, isValid: false });
  expect(certificate?.error).toMatch(
    /^The host did not get it from the certificate authority: .*connection refused/,
  );
});

import { exec } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { Resolver } from "node:dns/promises";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { Domain } from "../../protocol/api/domains.ts";
import type { Dns } from "../../protocol/api/dns.ts";
import type { Host } from "../../protocol/api/hosts.ts";
import type { Site } from "../../protocol/api/sites.ts";
import { ingressImage } from "../../agent/ingress/container.ts";
import { AcmeServer } from "../support/acme.ts";
import { overHttps, resolverAt, startCache } from "../support/name-server.ts";
import { PowerDns } from "../support/powerdns.ts";
import { startPrivateEngine, type PrivateEngine } from "../support/private-engine.ts";
import { TestNetwork, type Machine } from "../support/test-network.ts";
import { startControlPlane, type ControlPlane } from "./control-plane.ts";
import { startHost } from "./second-host.ts";
import {
  apiOf,
  gitHost,
  mailedLink,
  Repository,
  request,
  stateDirectory,
  until,
  type Created,
} from "./service.ts";

/**
 * The whole way of a name, all of it real: a control plane with PowerDNS, pebble, two hosts with engines and networks of their own, behind a
 * router, and a visitor whose resolver remembers each answer for its whole TTL.
 */
const domain = "sites.example";
const own = "www.shop.example";

let powerDns: PowerDns;
/** What the name server says now. */
let authoritative: Resolver;
let cache: Awaited<ReturnType<typeof startCache>>;
let acme: AcmeServer;
let root: string;
let plane: ControlPlane;
const network = new TestNetwork();
const machines = [network.addMachine(), network.addMachine()] as const;
const [oldAddress, newAddress] = [machines[0].address, machines[1].address];
/** What was started, in its order. */
const ends: (() => Promise<unknown>)[] = [];
/** The second is there when it is needed. */
let engines: [Promise<PrivateEngine>, Promise<PrivateEngine>];
const hostIds: string[] = [];
let site: Site;
let api: ControlPlane["api"];
/** Of another account. */
let rival: ControlPlane["api"];

async function addHost(machine: Machine, engine: PrivateEngine) {
  const { address } = machine;
  const { body } = await api<{ id: string; token: string }>("POST", "/hosts", {
    name: `at-${address.replaceAll(".", "-")}`,
  });
  await api("PATCH", `/hosts/${body.id}`, { ipv4: address });
  const ports = [plane.siteUrl, `http://${gitHost}`, acme.directory].map((url) => Number(new URL(url).port));
  await machine.lead(ports);
  const env = {
    BERTH_TLS_PORT: "443",
    BERTH_ACME_DIRECTORY: acme.directory,
    BERTH_ACME_CA_FILE: acme.caFile,
    // One visitor asks 50 times a second.
    BERTH_CONNECTIONS_PER_ADDRESS: "0",
  };
  const folder = join(stateDirectory, `host-${body.id}`);
  const programs = await startHost(plane.siteUrl, body.token, folder, env, { ...machine, engine });
  hostIds.push(body.id);
  ends.push(() => programs.stop());
  await until(
    async () => (await api<{ data: Host[] }>("GET", "/hosts")).body.data.find(({ id }) => id === body.id),
    (host) => host?.connected === true,
    120_000,
  );
}

/** An engine of the machine's own, with the images that a registry would give it. */
async function engineOf(machine: Machine): Promise<PrivateEngine> {
  const engine = await startPrivateEngine(machine);
  ends.push(() => engine.end());
  await promisify(exec)(
    `docker save ${ingressImage} node:24-bookworm-slim | docker --host unix://${engine.socketPath} load`,
  );
  return engine;
}

beforeAll(async () => {
  ends.push(() => network.stop());
  const first = engineOf(machines[0]);
  engines = [first, first.then(() => engineOf(machines[1]))];
  powerDns = await PowerDns.start(domain);
  ends.push(() => powerDns.stop());
  // The customer's, and the one above, which is asked for CAA records.
  for (const name of ["shop.example.", "example."])
    await powerDns.request("/zones", "POST", { name, kind: "Native", nameservers: [`ns.${name}`] });
  authoritative = resolverAt(powerDns.port);
  const doh = await overHttps(authoritative);
  ends.push(async () => doh.server.close());
  cache = await startCache(powerDns.port);
  ends.push(() => cache.stop());
  acme = await AcmeServer.start({ httpPort: 80, tlsPort: 443, dnsPort: powerDns.port });
  ends.push(() => acme.stop());
  root = await acme.root();
  plane = await startControlPlane(
    {
      SITES_ORIGIN: `https://${domain}`,
      PAYMENTS: "test",
      DNS_PROVIDER: "powerdns",
      POWERDNS_API_URL: powerDns.apiUrl,
      POWERDNS_API_KEY: powerDns.apiKey,
      DNS_ENDPOINTS: doh.endpoint,
      ACME_DIRECTORY: acme.directory,
    },
    { NODE_EXTRA_CA_CERTS: acme.caFile, BERTH_TICK_MS: "2000" },
  );
  ends.push(() => plane.stop());
  ({ api } = plane);
  rival = await otherAccount();
  await addHost(machines[0], await engines[0]);
});

afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

/** As a visitor's program does: the address is that of DNS, and only pebble's root is trusted. */
const visitorOf = (resolver: Resolver) => {
  const lookup: LookupFunction = (name, _, done) => {
    resolver.resolve4(name).then(
      ([address = ""]) => done(null, [{ address, family: 4 }]),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
  type Options = { method?: string; headers?: Record<string, string> };
  return (hostname: string, path: string, options: Options = {}) =>
    https.request({
      ...options,
      host: hostname,
      path,
      servername: hostname,
      headers: { ...options.headers, Host: hostname },
      ca: root,
      lookup,
      agent: false,
    });
};

type Seen = { status: number; text: string; names: string; serial: string; address: string };

async function answerTo(asked: http.ClientRequest): Promise<Seen> {
  const [response] = (await once(asked, "response")) as [http.IncomingMessage];
  const socket = response.socket as TLSSocket;
  const { subjectaltname: names = "", serialNumber: serial } = socket.getPeerCertificate();
  const address = socket.remoteAddress ?? "";
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return { status: response.statusCode ?? 0, text, names, serial, address };
}

const visit = (hostname: string): Promise<Seen> => answerTo(visitorOf(authoritative)(hostname, "/").end());

const app = `
const http = require("node:http");
const server = http.createServer((request, response) => {
  if (request.url === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const timer = setInterval(() => response.write("data: more\\n\\n"), 200);
    return response.on("close", () => clearInterval(timer));
  }
  let received = 0;
  request.on("data", (chunk) => (received += chunk.length));
  request.on("end", () => response.end(request.headers.host.replace(/:.*/, "") + " " + received));
});
server.on("upgrade", (request, socket) => {
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n");
  socket.on("error", () => socket.destroy()).pipe(socket);
});
server.listen(process.env.PORT || 3000);
`;
const files = {
  Dockerfile: `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`,
  "server.js": app,
};

async function createSite(name: string, by = api): Promise<Created> {
  const { status, body } = await by<Created>("POST", "/sites", {
    name,
    deployType: "github",
    githubUrl: new Repository(files).address,
    billingTerm: 1,
  });
  if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

const siteNow = async (id: string) => (await api<Site>("GET", `/sites/${id}`)).body;

it("a new site's own name answers by HTTPS under the wildcard certificate, and nobody does anything for it", async () => {
  const { siteId, invoiceToken } = await createSite("shop");
  await request(`${plane.siteUrl}/invoice/${invoiceToken}/pay`, { method: "POST" });
  site = await until(
    () => siteNow(siteId),
    ({ status }) => status !== "PENDING" && status !== "DEPLOYING",
  );
  expect(site.status).toBe("RUNNING");
  // Before it is issued, the first sites have certificates of their own.
  await until(
    async () => (await api<Dns>("GET", "/dns")).body.certificate,
    (certificate) => certificate?.notAfter != null,
  );
  const { hostname } = new URL(site.url);
  const seen = await until(
    () => visit(hostname).catch(String),
    (one) => typeof one !== "string",
    120_000,
  );
  expect(seen).toMatchObject({ status: 200, text: `${hostname} 0`, names: `DNS:*.${domain}` });
  expect((await api<Dns>("GET", "/dns")).body).toMatchObject({
    error: null,
    certificate: { name: `*.${domain}`, error: null },
  });
});

/** The records at a name, as their owner sets them at his provider. */
async function setRecords(name: string, type: string, contents: string[]): Promise<void> {
  const records = contents.map((content) => ({ content, disabled: false }));
  const set = { name: `${name}.`, type, ttl: 60, records };
  const changetype = records.length > 0 ? "REPLACE" : "DELETE";
  const done = await powerDns.request("/zones/shop.example.", "PATCH", { rrsets: [{ ...set, changetype }] });
  expect(done).toBe(true);
}

/** Looks at the domain now, by the way that the specification names. */
async function looked(siteId: string, name = own, by = api): Promise<Domain> {
  await by("PATCH", `/sites/${siteId}`, { domain: { verify: name } });
  return (await by<Domain>("GET", `/sites/${siteId}/domains/${name}`)).body;
}
const messages = ({ problems }: Domain) => problems.map(({ message }) => message);

it("a custom domain goes from PATCH to a trusted answer, and says on the way what is wrong in its zone", async () => {
  const target = new URL(site.url).hostname;
  const added = await api("PATCH", `/sites/${site.id}`, { domain: own });
  expect(added.status).toBe(200);
  const made = (await api<Domain>("GET", `/sites/${site.id}/domains/${own}`)).body;
  expect(made).toMatchObject({ status: "PENDING_VERIFICATION", target });
  const { record } = made;

  const refused = await api<{ reason: string }>("PATCH", `/sites/${site.id}`, { domain: { verify: own } });
  expect([refused.status, refused.body.reason]).toEqual([
    409,
    expect.stringContaining(`There is no TXT record at ${record.name} yet.`),
  ]);
  await setRecords(record.name, "TXT", ['"something else"']);
  expect((await looked(site.id)).problems[0]).toEqual({
    code: "proof_other",
    message: expect.stringContaining(`something else`),
  });
  await setRecords(record.name, "TXT", [`"${record.value}"`]);
  expect(await looked(site.id)).toMatchObject({
    status: "ERROR",
    problems: [{ code: "address_missing", message: expect.stringContaining(`${own} has no address`) }],
  });
  await setRecords(own, "A", ["192.0.2.1"]);
  expect(messages(await looked(site.id))).toEqual([
    expect.stringContaining(`${own} has A 192.0.2.1, it should be CNAME ${target} or A ${oldAddress}.`),
  ]);
  await setRecords(own, "A", []);
  await setRecords(own, "CNAME", [`${target}.`]);
  await setRecords("shop.example", "CAA", ['0 issue "other.example"']);
  expect(messages(await looked(site.id))).toEqual([
    expect.stringContaining(`shop.example has CAA 0 issue "other.example"`),
  ]);
  await setRecords("shop.example", "CAA", []);
  const active = await until(
    () => looked(site.id),
    ({ status }) => status === "ACTIVE",
    120_000,
  );
  expect(active).toMatchObject({
    problems: [],
    certificate: {
      issuer: expect.stringContaining("Pebble"),
      notBefore: expect.any(String),
      notAfter: expect.any(String),
      error: null,
    },
  });
  expect(await visit(own)).toMatchObject({ status: 200, text: `${own} 0`, names: `DNS:${own}` });
  const asked = http.get({ host: oldAddress, path: "/a?b", headers: { Host: own }, agent: false });
  const [plain] = (await once(asked, "response")) as [http.IncomingMessage];
  expect([plain.resume().statusCode, plain.headers.location]).toEqual([308, `https://${own}/a?b`]);
});

/** Somebody else, who has confirmed the address. */
async function otherAccount(): Promise<ControlPlane["api"]> {
  const account = { email: `other-${process.pid}@example.com`, password: "a long password" };
  const signUp = await request(`${plane.siteUrl}/api/auth/sign-up/email`, {
    method: "POST",
    headers: { Origin: plane.siteUrl, "Content-Type": "application/json" },
    body: JSON.stringify({ ...account, name: "Other" }),
  });
  expect(signUp.status).toBe(200);
  const link = new URL(await mailedLink(account.email, /https?:\S+confirm-address\S+/));
  await request(`${plane.siteUrl}${link.pathname}`, {
    method: "POST",
    headers: { Origin: plane.siteUrl, "Content-Type": "application/x-www-form-urlencoded" },
    body: link.searchParams.toString(),
  });
  return apiOf({ siteUrl: plane.siteUrl, baseUrl: `${plane.siteUrl}/api/v1`, ...account });
}

it("of two accounts that claim a name, the one whose record is in its zone has it, whichever claimed first, and keeps it", async () => {
  const claims = [
    { siteId: site.id, by: api },
    { siteId: (await createSite("rival", rival)).siteId, by: rival },
  ] as const;
  for (const [index, [holder, other]] of [claims, claims.toReversed()].entries()) {
    const name = `claimed-${index}.shop.example`;
    const proofs = [];
    // Who does not get it has claimed it first once, and last once.
    for (const { siteId, by } of claims) {
      expect((await by("PATCH", `/sites/${siteId}`, { domain: name })).status).toBe(200);
      proofs.push((await by<Domain>("GET", `/sites/${siteId}/domains/${name}`)).body.record.value);
    }
    const [first = "", second = ""] = index === 0 ? proofs : proofs.toReversed();
    await setRecords(`_berth-challenge.${name}`, "TXT", [`"${first}"`]);
    expect(await looked(other.siteId, name, other.by)).toMatchObject({
      status: "PENDING_VERIFICATION",
      problems: [{ code: "proof_other", message: expect.stringContaining(first) }, expect.anything()],
    });
    expect((await looked(holder.siteId, name, holder.by)).verifiedAt).not.toBe(null);
    await setRecords(`_berth-challenge.${name}`, "TXT", [`"${first}"`, `"${second}"`]);
    expect(await looked(other.siteId, name, other.by)).toMatchObject({
      status: "PENDING_VERIFICATION",
      problems: [
        { code: "name_held", message: expect.stringContaining(`${name} is in use by another site`) },
        expect.anything(),
      ],
    });
    expect((await looked(holder.siteId, name, holder.by)).verifiedAt).not.toBe(null);
  }
});

it("a name of a site that was deleted, or that was removed from one, is taken over by nobody without a record of his own", async () => {
  for (const [index, leave] of [
    (id: string, name: string) => api("PATCH", `/sites/${id}`, { domain: { remove: name } }),
    (id: string) => api("DELETE", `/sites/${id}`),
  ].entries()) {
    const name = `left-${index}.shop.example`;
    const { siteId } = await createSite(`left-${index}`);
    const taker = (await createSite(`taker-${index}`, rival)).siteId;
    const claim = async (id: string, by: ControlPlane["api"]) => {
      await by("PATCH", `/sites/${id}`, { domain: name });
      return (await by<Domain>("GET", `/sites/${id}/domains/${name}`)).body.record.value;
    };
    const [first, second] = [await claim(siteId, api), await claim(taker, rival)];
    await setRecords(`_berth-challenge.${name}`, "TXT", [`"${first}"`]);
    await setRecords(name, "A", [oldAddress]);
    expect((await looked(siteId, name)).verifiedAt).not.toBe(null);
    expect((await leave(siteId, name)).status).toBeLessThan(300);
    // The former owner's records are still there.
    expect(await looked(taker, name, rival)).toMatchObject({
      status: "PENDING_VERIFICATION",
      problems: expect.arrayContaining([expect.objectContaining({ code: "proof_other" })]),
    });
    await setRecords(`_berth-challenge.${name}`, "TXT", [`"${second}"`]);
    expect((await looked(taker, name, rival)).verifiedAt).not.toBe(null);
  }
});

/** Asks each of the names in turn, 50 times a second together, until told to stop. */
function ask(hostnames: readonly string[]) {
  const over = new AbortController();
  const visitor = visitorOf(cache.resolver);
  const asked: Promise<Seen | string>[] = [];
  const seen: Seen[] = [];
  const one = async (hostname: string): Promise<Seen | string> => {
    const found = await answerTo(visitor(hostname, "/").end());
    seen.push(found);
    return found.status === 200 && found.text === `${hostname} 0` ? found : `${found.status} ${found.text}`;
  };
  const loop = (async () => {
    for (let index = 0; !over.signal.aborted; index++) {
      asked.push(one(hostnames[index % hostnames.length] ?? "").catch(String));
      await delay(20);
    }
  })();
  return {
    /** Answered at this address by its own handshake. */
    at: (address: string) => seen.filter((found) => found.address === address),
    async stop() {
      over.abort();
      await loop;
      return (await Promise.all(asked)).filter((found) => typeof found === "string");
    },
  };
}

/** A connection that the app echoes, as a WebSocket is. */
async function openEcho(hostname: string): Promise<{ address: string; say(text: string): Promise<string> }> {
  const headers = { Connection: "Upgrade", Upgrade: "websocket" };
  const asked = visitorOf(cache.resolver)(hostname, "/socket", { headers }).end();
  const [, socket] = (await once(asked, "upgrade")) as [http.IncomingMessage, TLSSocket];
  return {
    address: socket.remoteAddress ?? "",
    async say(text) {
      socket.write(text);
      return String(((await once(socket, "data")) as [Buffer])[0]);
    },
  };
}

it("a move to another host fails no request, upload, WebSocket or event stream, whatever resolvers remember", async () => {
  await addHost(machines[1], await engines[1]);
  // No certificate can be obtained now: all of them come along.
  await acme.stop();
  const slug = new URL(site.url).hostname;
  const before = [await visit(slug), await visit(own)];
  expect(before.map(({ address }) => address)).toEqual([oldAddress, oldAddress]);

  const load = ask([slug, own]);
  const echo = await openEcho(own);
  const stream = visitorOf(cache.resolver)(slug, "/events").end();
  const [events] = (await once(stream, "response")) as [http.IncomingMessage];
  let streamed = 0;
  events.on("data", (chunk: Buffer) => (streamed += chunk.length));
  const upload = visitorOf(cache.resolver)(own, "/", { method: "POST" });
  const uploaded = answerTo(upload);
  uploaded.catch(() => undefined);
  upload.write(randomBytes(1024 * 1024));
  await vi.waitUntil(() => load.at(oldAddress).length > 100, { timeout: 120_000 });

  await api("PATCH", `/hosts/${hostIds[0]}`, { action: "drain" });
  await until(
    () => siteNow(site.id),
    ({ hostId }) => hostId === hostIds[1],
  );
  // The name server leads to the new host, and the visitor's resolver does not know it yet.
  await until(
    async () => ({
      addresses: await authoritative.resolve4(own).catch(String),
      dns: (await api<Dns>("GET", "/dns")).body,
    }),
    ({ addresses }) => addresses[0] === newAddress,
  );
  const after = await visit(own);
  expect(after).toMatchObject({ status: 200, address: newAddress, serial: before[1]?.serial });
  expect(await visit(slug)).toMatchObject({ address: newAddress, serial: before[0]?.serial });
  const atOld = load.at(oldAddress).length;
  upload.write(randomBytes(1024 * 1024));
  const echoMeanwhile = await openEcho(slug);
  expect(echoMeanwhile.address).toBe(oldAddress);

  await vi.waitUntil(
    () => load.at(newAddress).some(({ names }) => names === `DNS:${own}`) && load.at(newAddress).length > 200,
    { timeout: 120_000 },
  );
  expect(load.at(oldAddress).length).toBeGreaterThan(atOld);
  upload.end(randomBytes(1024 * 1024));
  expect(await uploaded).toMatchObject({ status: 200, text: `${own} ${3 * 1024 * 1024}` });
  for (const one of [echo, echoMeanwhile]) expect(await one.say("still here")).toBe("still here");
  const length = streamed;
  await vi.waitUntil(() => streamed > length, { timeout: 60_000 });
  stream.destroy();
  expect(await load.stop()).toEqual([]);
  const serials = new Set(load.at(newAddress).map(({ serial }) => serial));
  expect(serials).toEqual(new Set(before.map(({ serial }) => serial)));
}, 600_000);

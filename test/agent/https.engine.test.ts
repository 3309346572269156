import { execFileSync } from "node:child_process";
import { KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import tls from "node:tls";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer, type ClientOptions } from "ws";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { certificatesFileOf, writeCertificates } from "../../agent/ingress/certificates.ts";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import {
  ingressContainer,
  ingressImage,
  startIngress as startIngressContainer,
} from "../../agent/ingress/container.ts";
import { caddyPlace, putObtained } from "../../agent/ingress/obtained.ts";
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from "../../agent/databases/x509.ts";
import { AcmeServer } from "../support/acme.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { answers, get, TestResponder } from "../support/ingress.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const agentId = `test${randomBytes(6).toString("hex")}`;
const name = "www.shop.example";
const addressKey = randomBytes(32).toString("base64url");

let acme: AcmeServer;
let root: string;
let responder: TestResponder;
let settings: IngressSettings;
let tlsPort: number;
let containerId: string;
const server = http.createServer((request, response) =>
  response.end(`${String(request.headers["x-forwarded-proto"])} ${request.headers.host} ${request.url}`),
);
const sockets = new WebSocketServer({ server });
sockets.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(data.toString())));

async function startIngress(): Promise<void> {
  containerId = await startIngressContainer(engine, ingressContainer(agentId, settings).spec);
  await answers(settings.port, "unknown.example", 308);
}

beforeAll(async () => {
  responder = await TestResponder.start();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  await responder.openRoutes().route("site_1", [name], [target]);
  await responder.openRoutes().park("site_2", ["stopped.example"]);
  const port = await freePort();
  tlsPort = await freePort();
  acme = await AcmeServer.start({ httpPort: port, tlsPort });
  root = await acme.root();
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
  await startIngress();
});

afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(accessLogVolume(agentId));
  await engine.removeVolume(`berth-ingress-${agentId}`);
  await acme.stop();
  await responder.stop();
  sockets.close();
  server.close();
});

type Heard = { status: number; text: string; serial: string; headers: http.IncomingHttpHeaders };

/** A client that knows no other certificates than those of the test server's. */
function ask(hostname: string, path = "/", ca = root, host = hostname): Promise<Heard> {
  return new Promise((resolve, reject) => {
    https
      .get(
        {
          host: "127.0.0.1",
          port: tlsPort,
          servername: hostname,
          headers: { Host: host },
          path,
          ca,
          agent: false,
        },
        (response) => {
          const { serialNumber } = (response.socket as tls.TLSSocket).getPeerCertificate();
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          const { statusCode: status = 0, headers } = response;
          response.on("end", () => resolve({ status, text, serial: serialNumber, headers }));
        },
      )
      .on("error", reject);
  });
}

/** A connection by HTTP/2, which stays open. */
const openSession = (host: string): http2.ClientHttp2Session =>
  http2.connect(`https://${host}`, {
    createConnection: () =>
      tls.connect({ host: "127.0.0.1", port: tlsPort, servername: host, ca: root, ALPNProtocols: ["h2"] }),
  });

it("a site's own name is served by https, with a certificate that is made when somebody first asks", async () => {
  expect(await ask(name, "/a?b=c")).toMatchObject({ status: 200, text: `https ${name} /a?b=c` });
  const socket = new WebSocket(`wss://127.0.0.1:${tlsPort}/`, [], {
    servername: name,
    ca: root,
    headers: { Host: name },
  } as ClientOptions);
  await once(socket, "open");
  socket.send("hello");
  const [data] = (await once(socket, "message")) as [Buffer];
  expect(data.toString()).toBe("hello");
  socket.close();
});

it("a stopped site's page is served by https as well", async () => {
  expect(await ask("stopped.example")).toMatchObject({ status: 503 });
});

it("a name that leads to no site here has no certificate made", async () => {
  await expect(ask("unknown.example")).rejects.toThrow();
  const asked = await get(responder.statusPort, "x", { path: "/.berth/certificate?domain=unknown.example" });
  expect(asked.status).toBe(404);
  // Through the ingress, as anybody might ask it, the question is a path like any other.
  const outside = await ask("stopped.example", `/.berth/certificate?domain=${name}`);
  expect(outside.status).toBe(503);
});

/** A self-signed certificate for a name, as PEM. */
function selfSigned(hostname: string): { chain: string; key: string } {
  const folder = temporaryFolder();
  const [key, chain] = [join(folder, "key.pem"), join(folder, "chain.pem")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=received", "-addext", `subjectAltName=DNS:${hostname}`];
  execFileSync("openssl", ["req", "-x509", ...curve, ...names, "-keyout", key, "-out", chain], {
    stdio: "ignore",
  });
  return { chain: readFileSync(chain, "utf8"), key: readFileSync(key, "utf8") };
}

it("a certificate that the control plane sent serves its names, and its successor without a reload", async () => {
  const wildcard = "*.sites.example";
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const hostnames = Array.from({ length: 100 }, (_, index) => `site-${index}.sites.example`);
  await responder.openRoutes().route("site_3", hostnames, [target]);
  const [first, second] = [selfSigned(wildcard), selfSigned(wildcard)];
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const receive = (pair: typeof first) =>
    writeCertificates(certificatesFileOf(responder.file), {
      addressKey,
      certificates: [{ name: wildcard, ...pair, notAfter: tomorrow }],
      awaited: null,
      place: null,
    });
  receive(first);
  expect(statSync(certificatesFileOf(responder.file)).mode & 0o777).toBe(0o600);
  const serials = await Promise.all(hostnames.map(async (one) => (await ask(one, "/", first.chain)).serial));
  expect(new Set(serials)).toEqual(new Set([new X509Certificate(first.chain).serialNumber]));

  const socket = new WebSocket(`wss://127.0.0.1:${tlsPort}/`, [], {
    servername: hostnames[0],
    ca: first.chain,
    headers: { Host: hostnames[0] },
  } as ClientOptions);
  await once(socket, "open");
  receive(second);
  const { status, serial } = await ask(hostnames[0] ?? "", "/", second.chain);
  expect([status, serial]).toEqual([200, new X509Certificate(second.chain).serialNumber]);
  socket.send("still here");
  const [data] = (await once(socket, "message")) as [Buffer];
  expect(data.toString()).toBe("still here");
  socket.close();
  // Others obtain their own, as before.
  expect(await ask(name)).toMatchObject({ status: 200 });
});

it("the key of a received certificate is shown to nobody who does not know its address", async () => {
  const path = (key: string) => `/.berth/certificates/${key}?server_name=site-1.sites.example`;
  const known = await get(responder.statusPort, "x", { path: path(addressKey) });
  expect([known.status, known.text]).toEqual([200, expect.stringContaining("PRIVATE KEY")]);
  expect((await get(responder.statusPort, "x", { path: path("guess") })).status).toBe(204);
  const outside = await ask("stopped.example", path(addressKey));
  expect([outside.status, outside.text]).toEqual([503, expect.not.stringContaining("PRIVATE KEY")]);
});

/** A certificate of this name that ended a day ago. */
async function expired(hostname: string): Promise<{ chain: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const day = 86_400_000;
  const made = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [hostname] }],
    notBefore: new Date(Date.now() - 90 * day),
    notAfter: new Date(Date.now() - day),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }])],
  });
  const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
  return { chain: made.toString("pem"), key };
}

it("a certificate that has expired while the machine was off is renewed at the first visit, where requests are bounded too", async () => {
  const host = "asleep.example";
  const place = await caddyPlace(engine, agentId, acme.directory);
  if (!place) throw new Error("No volume");
  const { chain, key } = await expired(host);
  putObtained({ ...place, roots: null }, { name: host, chain, key, notAfter: "" });
  writeCertificates(certificatesFileOf(responder.file), {
    addressKey,
    certificates: [],
    awaited: null,
    place,
  });
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  await responder.openRoutes().route("site_asleep", [host], [target]);
  expect(await ask(host)).toMatchObject({ status: 200 });
});

it("plain http is sent on to https, path, query and method kept", async () => {
  const { status, headers } = await get(settings.port, name, { path: "/a?b=c" });
  expect([status, headers.location]).toEqual([308, `https://${name}:${tlsPort}/a?b=c`]);
});

it("a name with a dot at its end leads to the same name without it, path, query and method kept", async () => {
  const { status, headers } = await ask(name, "/a?b=c", root, `${name}.:${tlsPort}`);
  expect([status, headers.location]).toEqual([308, `//${name}:${tlsPort}/a?b=c`]);
  expect((await get(settings.port, `${name}.`)).headers.location).toBe(`https://${name}.:${tlsPort}/`);
});

it("an open connection for a site that has left is closed with its first answer, so that the next asks DNS where it is", async () => {
  const host = "left.example";
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const routes = responder.openRoutes();
  await routes.route("site_left", [host], [target]);
  const session = openSession(host);
  expect(await answerTo(session.request({ ":path": "/" }))).toContain(host);
  await routes.unroute("site_left");
  const closed = once(session, "close");
  await expect(answerTo(session.request({ ":path": "/" }))).rejects.toThrow("404");
  await closed;
});

it("HSTS is in all answers by https, redirects included, and in none by plain http", async () => {
  const [host, other] = ["hsts.example", "www.hsts.example"];
  const target = { containerId: "c", address: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const routes = responder.openRoutes();
  await routes.route("site_hsts", [host, other], [target]);
  const sent = async (hostname: string) => {
    const { status, headers } = await ask(hostname);
    return [status, headers["strict-transport-security"]];
  };
  expect(await sent(host)).toEqual([200, undefined]);
  await routes.rule("site_hsts", { hsts: { maxAgeSeconds: 86_400 } });
  expect(await sent(host)).toEqual([200, "max-age=86400"]);
  await routes.rule("site_hsts", {
    primaryDomain: host,
    hsts: { maxAgeSeconds: 31_536_000, includeSubdomains: true, preload: true },
  });
  const all = "max-age=31536000; includeSubDomains; preload";
  expect([await sent(host), await sent(other)]).toEqual([
    [200, all],
    [308, all],
  ]);
  const plain = await get(settings.port, host);
  expect([plain.status, plain.headers["strict-transport-security"]]).toEqual([308, undefined]);
  await routes.unroute("site_hsts");
});

/** A version of a site: answers its name when it has heard all, or bit by bit; ends when nobody uses it any more. */
async function startVersion(name: string) {
  let uses = 0;
  const version = http.createServer((request, response) => {
    uses++;
    response.on("close", () => uses--);
    request.resume().on("end", () => {
      if (request.url !== "/events") return response.end(name);
      let left = 10;
      const timer = setInterval(() => {
        response.write(`data: ${--left}\n\n`);
        if (left > 0) return;
        clearInterval(timer);
        response.end(name);
      }, 50);
    });
  });
  const own = new WebSocketServer({ server: version });
  version.listen(0, "127.0.0.1");
  await once(version, "listening");
  return {
    target: { containerId: name, address: "127.0.0.1", port: (version.address() as AddressInfo).port },
    async end(): Promise<void> {
      // As long as the agent waits at least, and then for as long as it is used.
      await delay(2000);
      await vi.waitUntil(() => uses === 0, 10_000);
      for (const socket of own.clients) socket.close(1001);
      version.closeAllConnections();
      version.close();
    },
  };
}

/** Of what HTTP/2 is asked for over one connection at once: plainly, with a body that comes slowly, and for an event stream. */
const uses: ((session: http2.ClientHttp2Session) => Promise<string>)[] = [
  (session) => answerTo(session.request({ ":path": "/" })),
  async (session) => {
    const stream = session.request({ ":path": "/", ":method": "POST" });
    const answer = answerTo(stream);
    for (let part = 0; part < 5; part++) {
      stream.write("x".repeat(1000));
      await delay(100);
    }
    stream.end();
    return answer;
  },
  async (session) => {
    const text = await answerTo(session.request({ ":path": "/events" }));
    return text.split("\n\n").at(-1) ?? "";
  },
];

async function answerTo(stream: http2.ClientHttp2Stream): Promise<string> {
  const [[headers], text] = await Promise.all([
    once(stream, "response") as Promise<[http2.IncomingHttpStatusHeader]>,
    new Response(stream as unknown as ReadableStream).text(),
  ]);
  if (headers[":status"] !== 200) throw new Error(`${headers[":status"] ?? 0} ${text}`);
  return text;
}

it("ten swaps under HTTP/2 cut no request, no slow body and no event stream, and keep every connection", async () => {
  const host = "swaps.example";
  let version = await startVersion("v0");
  await responder.openRoutes().route("site_3", [host], [version.target]);
  expect(await ask(host)).toMatchObject({ text: "v0" });
  const socket = new WebSocket(`wss://127.0.0.1:${tlsPort}/`, [], {
    servername: host,
    ca: root,
    headers: { Host: host },
  } as ClientOptions);
  await once(socket, "open");
  const closed = once(socket, "close") as Promise<[number]>;
  const seen = new Map<string, number>();
  const failures: string[] = [];
  const over = new AbortController();
  const sessions = [1, 2].map(() => openSession(host));
  const clients = sessions.flatMap((session) => {
    session.on("goaway", () => failures.push("goaway")).on("error", (error) => failures.push(String(error)));
    return uses.flatMap((use) =>
      [1, 2, 3].map(async () => {
        while (!over.signal.aborted) {
          const text = await use(session).catch((error: unknown) => void failures.push(String(error)));
          if (text !== undefined) seen.set(text, (seen.get(text) ?? 0) + 1);
        }
      }),
    );
  });
  const ends: Promise<void>[] = [];
  for (let number = 1; number <= 10; number++) {
    await vi.waitUntil(() => (seen.get(`v${number - 1}`) ?? 0) > 20, 10_000);
    const next = await startVersion(`v${number}`);
    await responder.openRoutes().route("site_3", [host], [next.target]);
    ends.push(version.end());
    version = next;
  }
  await vi.waitUntil(() => (seen.get("v10") ?? 0) > 20, 10_000);
  await Promise.all(ends);
  over.abort();
  await Promise.all(clients);
  expect(failures).toEqual([]);
  expect([...seen.keys()].toSorted()).toEqual(
    Array.from({ length: 11 }, (_, index) => `v${index}`).toSorted(),
  );
  // What the app says at its end reaches the other end.
  expect((await closed)[0]).toBe(1001);
  for (const session of sessions) session.close();
  await version.end();
});

/** Messages to and fro, and what the app says at the end, as in a call of gRPC. */
async function call(session: http2.ClientHttp2Session): Promise<[string[], unknown, unknown]> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/chat.Chat/Talk",
    "content-type": "application/grpc+proto",
    te: "trailers",
  });
  const trailers = once(stream, "trailers") as Promise<[http2.IncomingHttpHeaders]>;
  const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  const heard: string[] = [];
  for (const said of ["one", "two"]) {
    stream.write(said);
    const [answer] = (await once(stream, "data")) as [Buffer];
    heard.push(answer.toString());
  }
  stream.end();
  return [heard, head[":status"], (await trailers)[0]["grpc-status"]];
}

it("calls of gRPC reach the app by HTTP/2, message by message in both directions, also where a site has rules", async () => {
  const host = "grpc.example";
  const app = http2.createServer();
  app.on("stream", (stream, headers) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    const status = headers[":authority"]?.startsWith(host) ? "0" : "3";
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
    stream.on("data", (data: Buffer) =>
      stream.write(`${String(headers["x-forwarded-proto"])} ${data.toString()}`),
    );
    stream.on("end", () => stream.end());
  });
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  const target = { containerId: "c", address: "127.0.0.1", port: (app.address() as AddressInfo).port };
  const routes = responder.openRoutes();
  await routes.route("site_grpc", [host], [target]);
  const session = openSession(host);
  const answer = [["https one", "https two"], 200, "0"];
  expect(await call(session)).toEqual(answer);
  await routes.rule("site_grpc", { headers: { "X-Of": "grpc" } });
  expect(await call(session)).toEqual(answer);
  session.destroy();
  app.close();
});

it("the ingress starts with as many networks of proxies as a large CDN has", async () => {
  const otherId = `test${randomBytes(6).toString("hex")}`;
  const port = await freePort();
  const tls = { port: await freePort() };
  const { spec } = ingressContainer(otherId, {
    address: "127.0.0.1",
    port,
    responderPort: await freePort(),
    statusPort: await freePort(),
    tls,
    trustedProxies: Array.from({ length: 200 }, (_, index) => `2001:db8:${index}::/48`),
  });
  try {
    await startIngressContainer(engine, spec);
    await answers(port, "unknown.example", 308);
  } finally {
    const found = await engine.inspectContainer(spec.name);
    if (found) await engine.removeContainer(found.id);
    await engine.removeVolume(accessLogVolume(otherId));
    await engine.removeVolume(`berth-ingress-${otherId}`);
  }
});

it("the ingress is the release of Caddy that its image is named after", () => {
  const version = execFileSync("docker", ["exec", containerId, "caddy", "version"], { encoding: "utf8" });
  expect(`caddy:${/(\d+\.\d+)/.exec(version)?.[1]}`).toBe(ingressImage);
});

it("HTTP/3 is offered on the same port number, and serves a request there", async () => {
  const { headers } = await offered();
  expect(headers["alt-svc"]).toContain(`h3=":${tlsPort}"`);
  // Node has no client of HTTP/3; another Caddy is one.
  const port = await freePort();
  const config = {
    admin: { disabled: true },
    apps: {
      http: {
        servers: {
          client: {
            listen: [`127.0.0.1:${port}`],
            automatic_https: { disable: true },
            routes: [
              {
                handle: [
                  {
                    handler: "reverse_proxy",
                    upstreams: [{ dial: `127.0.0.1:${tlsPort}` }],
                    headers: { request: { set: { Host: [name] } } },
                    transport: {
                      protocol: "http",
                      versions: ["3"],
                      tls: { server_name: name, insecure_skip_verify: true },
                    },
                  },
                ],
              },
            ],
          },
        },
      },
    },
  };
  const id = await engine.createContainer({
    name: `${agentId}-client`,
    Image: ingressImage,
    Env: [`CONFIG=${JSON.stringify(config)}`],
    Entrypoint: [],
    Cmd: ["sh", "-c", 'printf %s "$CONFIG" | exec caddy run --config -'],
    Labels: {},
    HostConfig: { NetworkMode: "host", Init: true },
  });
  try {
    await engine.startContainer(id);
    const answer = () => get(port, name, { path: "/a?b=c" }).catch(() => null);
    await vi.waitUntil(async () => (await answer())?.status === 200, { timeout: 20_000 });
    expect((await answer())?.text).toBe(`https ${name} /a?b=c`);
  } finally {
    await engine.removeContainer(id);
  }
});

function offered(): Promise<http.IncomingMessage> {
  const options = { host: "127.0.0.1", port: tlsPort, servername: name, headers: { Host: name }, ca: root };
  return new Promise((resolve, reject) => {
    https.get({ ...options, agent: false }, (response) => resolve(response.resume())).on("error", reject);
  });
}

it("certificates outlive the ingress's container, and are served while their issuer is away", async () => {
  const { serial } = await ask(name);
  await acme.stop();
  const place = await caddyPlace(engine, agentId, acme.directory);
  writeCertificates(certificatesFileOf(responder.file), {
    addressKey,
    certificates: [],
    awaited: null,
    place,
  });
  // Each asks whether it may load it.
  for (let times = 0; times < 2; times++) {
    await engine.removeContainer(containerId);
    await startIngress();
    expect(await ask(name)).toMatchObject({ status: 200, serial });
  }
});

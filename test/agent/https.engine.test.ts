import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer, type ClientOptions } from "ws";
import { createEngine } from "../../agent/docker/engine.ts";
import type { IngressSettings } from "../../agent/ingress/caddy.ts";
import { ingressContainer } from "../../agent/ingress/container.ts";
import { AcmeServer } from "../support/acme.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { get, TestResponder } from "../support/ingress.ts";

const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const agentId = `test${randomBytes(6).toString("hex")}`;
const name = "www.shop.example";

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
  containerId = await engine.createContainer(ingressContainer(agentId, settings).spec);
  await engine.startContainer(containerId);
  await vi.waitUntil(
    () =>
      get(settings.port, "unknown.example").then(
        ({ status }) => status === 308,
        () => false,
      ),
    { timeout: 20_000 },
  );
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
    tls: {
      port: tlsPort,
      statusPort: responder.statusPort,
      directory: acme.directory,
      caPem: readFileSync(acme.caFile, "utf8"),
    },
  };
  await startIngress();
});

afterAll(async () => {
  await engine.removeContainer(containerId);
  await engine.removeVolume(`berth-ingress-${agentId}`);
  await acme.stop();
  await responder.stop();
  sockets.close();
  server.close();
});

/** A client that knows no other certificates than those of the test server's. */
function ask(hostname: string, path = "/"): Promise<{ status: number; text: string; serial: string }> {
  return new Promise((resolve, reject) => {
    https
      .get(
        {
          host: "127.0.0.1",
          port: tlsPort,
          servername: hostname,
          headers: { Host: hostname },
          path,
          ca: root,
          agent: false,
        },
        (response) => {
          const { serialNumber } = (response.socket as tls.TLSSocket).getPeerCertificate();
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text, serial: serialNumber }));
        },
      )
      .on("error", reject);
  });
}

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

it("plain http is sent on to https, path, query and method kept", async () => {
  const { status, headers } = await get(settings.port, name, { path: "/a?b=c" });
  expect([status, headers.location]).toEqual([308, `https://${name}:${tlsPort}/a?b=c`]);
});

it("certificates outlive the ingress's container, and are served while their issuer is away", async () => {
  const { serial } = await ask(name);
  await acme.stop();
  await engine.removeContainer(containerId);
  await startIngress();
  expect(await ask(name)).toMatchObject({ status: 200, serial });
});

import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Forwarder, PeerGate, peersAddress, type Peer } from "../../agent/ingress/hop.ts";
import { openPeers, peersFileOf, readPeers, type Peers } from "../../agent/ingress/peers.ts";
import { freePort } from "../../scripts/lib/state.ts";
import type { PeerAuthority } from "../../worker/adapters/peer-authority.ts";
import { newAuthority, peersOf } from "../support/peers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let authority: PeerAuthority;
let port: number;
let inner: http.Server;
let gate: PeerGate;
let forwarder: Forwarder;
/** The host that a site has left, and the one where it is now. */
let old: Peers;
let now: Peers;
let peer: Peer;

beforeEach(async () => {
  inner = http.createServer((request, response) => {
    let length = 0;
    request.on("data", (chunk: Buffer) => (length += chunk.length));
    request.on("end", () => response.end(`${request.headers.host} ${length}`));
  });
  inner.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    socket.pipe(socket);
  });
  const statusPort = await freePort();
  inner.listen(statusPort, peersAddress);
  await once(inner, "listening");
  authority = await newAuthority();
  port = await freePort();
  peer = { hostId: "host_b", address: "127.0.0.1", port };
  old = await peersOf(authority, "host_a", port);
  now = await peersOf(authority, "host_b", port, { from: ["host_a"] });
  gate = new PeerGate(statusPort);
  forwarder = new Forwarder();
});

afterEach(() => {
  forwarder.close();
  gate.apply(null);
  inner.closeAllConnections();
  inner.close();
});

const led = () => vi.waitUntil(() => forwarder.portTo(peer), { timeout: 10_000 });
const isNotLed = () => vi.waitUntil(() => forwarder.portTo(peer) === null, { timeout: 10_000 });

async function pass(): Promise<number> {
  gate.apply(now);
  forwarder.apply(old, [peer]);
  return led();
}

/** What a client of this certificate meets at the port: the first byte, or nothing. */
const meets = (shown: { key?: string; cert?: string }): Promise<Buffer | null> =>
  new Promise((resolve) => {
    const socket = tls.connect({
      host: "127.0.0.1",
      port,
      ca: authority.certificate,
      ...shown,
      checkServerIdentity: () => undefined,
    });
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(null));
    socket.once("data", (bytes: Buffer) => {
      resolve(bytes);
      socket.destroy();
    });
  });

it("passes on requests, uploads and upgraded connections as they are", async () => {
  const local = await pass();
  const body = Buffer.alloc(8 * 1024 * 1024, "x");
  const answer = await fetch(`http://127.0.0.1:${local}/`, { method: "POST", body });
  expect(await answer.text()).toBe(`127.0.0.1:${local} ${body.length}`);
  const request = http.get({
    host: "127.0.0.1",
    port: local,
    headers: { Connection: "Upgrade", Upgrade: "echo" },
  });
  const [, socket] = (await once(request, "upgrade")) as [http.IncomingMessage, net.Socket];
  for (const word of ["one", "two"]) {
    socket.write(word);
    expect(String((await once(socket, "data"))[0])).toBe(word);
  }
  socket.destroy();
});

it("takes nobody but a host of this installation whose sites have come here", async () => {
  const keyOf = ({ key, certificate }: Peers) => ({ key, cert: certificate ?? "" });
  gate.apply(now);
  await vi.waitUntil(() => meets(keyOf(old)));
  expect(await meets({})).toBeNull();
  const stranger = await newAuthority();
  expect(await meets(keyOf(await peersOf(stranger, "host_a", port)))).toBeNull();
  expect(await meets(keyOf(await peersOf(authority, "host_c", port)))).toBeNull();
  // Nobody passes anything on any more: the port is closed.
  gate.apply({ ...now, from: [] });
  await expect(once(net.connect({ host: "127.0.0.1", port }), "connect")).rejects.toThrow("ECONNREFUSED");
});

it("sends nothing to a host that is not the one which was named", async () => {
  const said = vi.spyOn(console, "error").mockReturnValue();
  const isSaid = (reason: string) =>
    vi.waitUntil(() => said.mock.calls.some(([text]) => String(text).endsWith(reason)), { timeout: 10_000 });
  await pass();
  gate.apply(await peersOf(authority, "host_c", port, { from: ["host_a"] }));
  await isSaid("another host answers there");
  expect(forwarder.portTo(peer)).toBeNull();
  gate.apply(now);
  await led();
  gate.apply(await peersOf(await newAuthority(), "host_b", port, { from: ["host_a"] }));
  await isSaid("certificate signature failure");
  expect(forwarder.portTo(peer)).toBeNull();
  said.mockRestore();
});

it("leads there only while that host takes connections, and holds requests while its responder starts again", async () => {
  const local = await pass();
  gate.apply(null);
  const held = fetch(`http://127.0.0.1:${local}/`, { method: "POST", body: "held" });
  await isNotLed();
  gate.apply(now);
  expect(await (await held).text()).toBe(`127.0.0.1:${local} 4`);
  await led();
});

it("keeps open what was passed on when the time is over, and ends it when the host is removed", async () => {
  const local = await pass();
  const request = http.get({
    host: "127.0.0.1",
    port: local,
    headers: { Connection: "Upgrade", Upgrade: "echo" },
  });
  const [, socket] = (await once(request, "upgrade")) as [http.IncomingMessage, net.Socket];
  forwarder.apply(old, []);
  gate.apply({ ...now, from: [] });
  socket.write("still here");
  expect(String((await once(socket, "data"))[0])).toBe("still here");
  const closed = once(socket, "close");
  gate.apply({ ...now, from: [], hosts: ["host_b"] });
  await closed;
});

it("shows another certificate to new connections and ends none", async () => {
  const local = await pass();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const ask = () =>
    new Promise<boolean>((resolve, reject) => {
      const request = http.get({ host: "127.0.0.1", port: local, agent }, (response) =>
        response.resume().on("end", () => resolve(request.reusedSocket)),
      );
      request.on("error", reject);
    });
  await ask();
  const next = await newAuthority();
  now = await peersOf(next, "host_b", port, { from: ["host_a"] });
  old = await peersOf(next, "host_a", port);
  await pass();
  expect(await ask()).toBe(true);
  agent.destroy();
});

it("the agent's key stays the same over restarts, is its owner's only, and is replaced where the file is damaged", () => {
  const folder = temporaryFolder();
  const file = peersFileOf(join(folder, "ingress", "routes.json"));
  const place = { address: "", port: 5302 };
  const first = openPeers(file, place);
  const { certificate, authority, hosts } = old;
  first.take({
    certificate: certificate ?? "",
    authority: authority ?? "",
    from: [],
    sites: [],
    hosts: hosts as never,
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(openPeers(file, { ...place, port: 5303 }).facts()).toEqual({ ...first.facts(), port: 5303 });
  expect(readPeers(file)).toMatchObject({ certificate, hosts, port: 5303 });
  writeFileSync(file, "{");
  expect(openPeers(file, place).facts().publicKey).not.toBe(first.facts().publicKey);
  expect(readPeers(file).certificate).toBeNull();
});

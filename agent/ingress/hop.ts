import net from "node:net";
import tls from "node:tls";
import { setTimeout as delay } from "node:timers/promises";
import type { Peers } from "./peers.ts";

/**
 * The way of requests from the host that a site has left to the one where it is now: TLS 1.3, in which each end shows a
 * certificate of the installation's own authority. Within it pass the bytes of HTTP as Caddy writes and reads them.
 */

/** Where Caddy takes what other hosts pass on, on the port number of the responder's pages. */
export const peersAddress = "127.0.0.3";

/** Another host of the installation, as its requests are taken. */
export type Peer = { hostId: string; address: string; port: number };

/** The first byte of the end that takes requests: it knows the other one, and its Caddy takes a connection. */
const ready = 6;
const greetWithinMs = 2000;
/** The other end's responder may be starting. */
const patienceMs = 3000;
const lookMs = 500;
const maxConnections = 4000;
/** Per second. Whoever is not admitted by then tries again. */
const maxHandshakes = 200;

/** What both ends show and ask for; null: the control plane has sent no certificate yet. */
const shownBy = ({ key, certificate, authority }: Peers) =>
  certificate === null || authority === null
    ? null
    : { key, cert: certificate, ca: authority, minVersion: "TLSv1.3" as const };

/** Takes the connections of hosts that sites have left. It listens only while there are any. */
export class PeerGate {
  private readonly statusPort: number;
  private server: net.Server | null = null;
  private tls: tls.Server | null = null;
  private handshakes = 0;
  private place = "";
  private shown = "";
  private peers: Peers | null = null;
  private readonly open = new Map<tls.TLSSocket, string>();

  constructor(statusPort: number) {
    this.statusPort = statusPort;
  }

  /** Called again every second, as a port that is taken now may be free then. */
  apply(peers: Peers | null): void {
    this.peers = peers;
    this.handshakes = 0;
    for (const [socket, hostId] of this.open) if (peers?.hosts.includes(hostId) !== true) socket.destroy();
    const shown = peers && peers.from.length > 0 ? shownBy(peers) : null;
    if (!peers || !shown) return this.close();
    const { address, port } = peers;
    const place = `${address}/${port}`;
    if (this.server && this.place === place) {
      if (this.shown !== shown.cert + shown.key) this.tls?.setSecureContext(shown);
      this.shown = shown.cert + shown.key;
      return;
    }
    this.close();
    Object.assign(this, { place, shown: shown.cert + shown.key });
    const secure = tls.createServer(
      { ...shown, requestCert: true, rejectUnauthorized: true, handshakeTimeout: greetWithinMs },
      (socket) => this.admit(socket),
    );
    secure.on("tlsClientError", () => undefined);
    const server = net.createServer((socket) => {
      // Anybody may begin one, and this process has Caddy's questions to answer too.
      if (++this.handshakes > maxHandshakes) socket.destroy();
      else secure.emit("connection", socket);
    });
    server.maxConnections = maxConnections;
    server.on("error", (error) => {
      console.error(`Requests of other hosts cannot be taken: ${error.message}`);
      if (this.server === server) this.close();
    });
    this.tls = secure;
    this.server = server.listen({ port, ...(address !== "" && { host: address }) });
  }

  /** Open connections stay. */
  close(): void {
    this.server?.close();
    this.server = null;
  }

  private admit(socket: tls.TLSSocket): void {
    const hostId = commonNameOf(socket);
    socket.on("error", () => undefined);
    if (this.peers?.from.includes(hostId) !== true) return void socket.destroy();
    this.open.set(socket, hostId);
    socket.once("close", () => this.open.delete(socket));
    const inner = net.connect({ host: peersAddress, port: this.statusPort });
    inner.once("connect", () => socket.write(Buffer.of(ready)));
    join(socket, inner);
  }
}

const commonNameOf = (socket: tls.TLSSocket): string => String(socket.getPeerCertificate().subject?.CN ?? "");

/** Passes connections on to other hosts: each has a port of the loopback address here, to which Caddy is sent. */
export class Forwarder {
  private peers: Peers | null = null;
  private context: tls.SecureContext | null = null;
  private readonly lines = new Map<string, Line>();

  apply(peers: Peers | null, wanted: readonly Peer[]): void {
    if (peers !== this.peers) {
      const shown = peers && shownBy(peers);
      this.context = shown && tls.createSecureContext(shown);
    }
    this.peers = peers;
    const kept = new Set(wanted.map(nameOf));
    for (const [name, line] of this.lines) {
      if (kept.has(name)) continue;
      line.close();
      this.lines.delete(name);
    }
    for (const peer of wanted)
      if (!this.lines.has(nameOf(peer))) this.lines.set(nameOf(peer), new Line(peer, () => this.context));
  }

  /** The local port that leads there; null while that host does not take connections. */
  portTo(peer: Peer): number | null {
    return this.lines.get(nameOf(peer))?.portIfUp() ?? null;
  }

  close(): void {
    this.apply(null, []);
  }
}

const nameOf = ({ hostId, address, port }: Peer): string => `${hostId}/${address}/${port}`;

class Line {
  private readonly server = net.createServer({ pauseOnConnect: true }, (local) => void this.pass(local));
  private readonly peer: Peer;
  private readonly context: () => tls.SecureContext | null;
  private readonly over = new AbortController();
  private isUp = false;

  constructor(peer: Peer, context: () => tls.SecureContext | null) {
    this.peer = peer;
    this.context = context;
    this.server.on("error", (error) =>
      console.error(`Requests are not passed on to ${peer.hostId}: ${error.message}`),
    );
    this.server.listen({ host: "127.0.0.1", port: 0 });
    void this.watch();
  }

  portIfUp(): number | null {
    const address = this.server.address();
    return this.isUp && address !== null && typeof address === "object" ? address.port : null;
  }

  /** Open connections stay. */
  close(): void {
    this.over.abort();
    this.isUp = false;
    this.server.close();
  }

  private async watch(): Promise<void> {
    let told = "";
    while (!this.over.signal.aborted) {
      let failure = "";
      try {
        (await this.dial()).destroy();
      } catch (error) {
        failure = error instanceof Error ? error.message : String(error);
      }
      this.isUp = failure === "" && !this.over.signal.aborted;
      const { hostId, address, port } = this.peer;
      if (failure !== told && failure !== "")
        console.error(
          `${hostId} takes no requests at ${address} port ${port}, so copies here answer: ${failure}`,
        );
      told = failure;
      await delay(lookMs, undefined, { ref: false });
    }
  }

  private async pass(local: net.Socket): Promise<void> {
    const began = performance.now();
    local.on("error", () => undefined);
    while (!local.destroyed) {
      try {
        const remote = await this.dial();
        return local.destroyed ? void remote.destroy() : join(local, remote);
      } catch {
        if (performance.now() - began > patienceMs) break;
        await delay(100);
      }
    }
    this.isUp = false;
    local.resetAndDestroy();
  }

  /** Resolves once the other end has admitted this host. @throws Error */
  private dial(): Promise<tls.TLSSocket> {
    const { hostId, address: host, port } = this.peer;
    const secureContext = this.context();
    if (!secureContext) return Promise.reject(new Error("no certificate"));
    return new Promise((resolve, reject) => {
      const socket = tls.connect({
        host,
        port,
        secureContext,
        servername: "",
        checkServerIdentity: (_, { subject }) =>
          subject.CN === hostId ? undefined : new Error("another host answers there"),
      });
      const timer = setTimeout(() => socket.destroy(new Error("no answer")), greetWithinMs);
      socket.on("error", reject);
      socket.once("close", () => {
        clearTimeout(timer);
        reject(new Error("not admitted"));
      });
      socket.once("data", (bytes: Buffer) => {
        clearTimeout(timer);
        socket.pause();
        if (bytes[0] !== ready) return void socket.destroy(new Error("not a host of this installation"));
        if (bytes.length > 1) socket.unshift(bytes.subarray(1));
        resolve(socket);
      });
    });
  }
}

/** What breaks at one end breaks at the other: an answer that is cut off must not look complete. */
function join(one: net.Socket, other: net.Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setNoDelay(true).setKeepAlive(true, 30_000);
    from.on("error", () => (to instanceof tls.TLSSocket ? to.destroy() : to.resetAndDestroy()));
    from.once("close", () => to.destroySoon());
    from.pipe(to);
  }
}

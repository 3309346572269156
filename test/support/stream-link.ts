import { createServer, type AddressInfo, type Socket } from "node:net";
import type { FromAgent, StreamTarget } from "../../protocol/agent/messages.ts";
import { decodeFrame, encodeFrame } from "../../protocol/agent/stream-frames.ts";
import { Allowance, costOf, Intake, piecesOf } from "../../protocol/api/streams.ts";
import type { StreamServer } from "../../agent/streams/stream-server.ts";

type Closed = Extract<FromAgent, { type: "streamClosed" }>;

/** A stream as the control plane holds it. */
class StreamPeer {
  readonly chunks: Uint8Array[] = [];
  closed: Closed | undefined;
  isOpen = false;
  onOpen: () => void = () => undefined;
  readonly allowance = new Allowance();
  readonly intake = new Intake();
  /** false: what comes is kept back, as by a client that does not read. */
  consumes = true;
  onBytes: (bytes: Uint8Array) => void = () => undefined;

  readonly id: number;
  private readonly link: StreamLink;

  constructor(id: number, link: StreamLink) {
    this.id = id;
    this.link = link;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  async send(bytes: Uint8Array): Promise<void> {
    for (const piece of piecesOf(bytes))
      if (await this.allowance.take(costOf(piece)))
        this.link.server.receiveBytes(encodeFrame(this.id, piece));
  }

  consume(cost: number): void {
    const bytes = this.intake.consume(cost);
    if (bytes > 0) this.link.server.receive({ type: "streamCredit", streamId: this.id, bytes });
  }

  close(): void {
    this.link.server.receive({ type: "closeStream", streamId: this.id });
  }
}

/** The control plane's end of an agent's streams, by the same rules, without a network in between. */
export class StreamLink {
  readonly peers = new Map<number, StreamPeer>();
  readonly reports: number[][] = [];
  private made = 0;

  readonly server: StreamServer;

  constructor(server: StreamServer) {
    this.server = server;
    server.connected({
      send: (message) => this.receive(message),
      sendBytes: (frame) => this.receiveBytes(frame),
    });
  }

  open(target: StreamTarget): StreamPeer {
    const peer = new StreamPeer(++this.made, this);
    this.peers.set(peer.id, peer);
    this.server.receive({ type: "openStream", streamId: peer.id, target });
    return peer;
  }

  /** A port of this machine whose connections are streams to the target. */
  async listen(target: StreamTarget): Promise<{ port: number; close(): void }> {
    const listener = createServer((socket: Socket) => {
      const peer = this.open(target);
      peer.onBytes = (bytes) => void socket.write(bytes);
      peer.onOpen = () =>
        socket.on("data", (bytes) => {
          socket.pause();
          void peer.send(bytes).then(() => socket.resume());
        });
      socket.on("close", () => peer.close()).on("error", () => undefined);
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    return { port: (listener.address() as AddressInfo).port, close: () => void listener.close() };
  }

  private receive(message: FromAgent): void {
    if (message.type === "streams") this.reports.push(message.open);
    if (message.type === "streamOpened") {
      this.peer(message.streamId).isOpen = true;
      this.peer(message.streamId).onOpen();
    }
    if (message.type === "streamCredit") this.peer(message.streamId).allowance.give(message.bytes);
    if (message.type === "streamClosed") {
      this.peer(message.streamId).closed = message;
      this.peer(message.streamId).allowance.end();
    }
  }

  private receiveBytes(frame: Uint8Array): void {
    const decoded = decodeFrame(frame);
    if (!decoded) throw new Error("not a frame");
    const peer = this.peer(decoded.streamId);
    const cost = costOf(decoded.payload);
    if (!peer.intake.admits(cost)) throw new Error("more than the window");
    peer.chunks.push(decoded.payload);
    peer.onBytes(decoded.payload);
    if (peer.consumes) peer.consume(cost);
  }

  private peer(id: number): StreamPeer {
    const peer = this.peers.get(id);
    if (!peer) throw new Error(`no stream ${id}`);
    return peer;
  }
}

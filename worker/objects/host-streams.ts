import type { FromAgent, StreamTarget, ToAgent } from "../../protocol/agent/messages.ts";
import { maxStreams } from "../../protocol/agent/messages.ts";
import { decodeFrame, encodeFrame } from "../../protocol/agent/stream-frames.ts";
import {
  costOf,
  FromStreamClient,
  Intake,
  maxPayloadBytes,
  streamCloseCodes,
  windowBytes,
  type ToStreamClient,
} from "../../protocol/api/streams.ts";
import { jsonIn } from "../../protocol/json.ts";
import type { Reader } from "../ctx.ts";
import { admit } from "../domain/sliding-window.ts";
import { logError } from "../log-error.ts";
import { offline, refused, slow, type Refused } from "./host-questions.ts";

export type AboutStreams = Extract<
  FromAgent,
  { type: "streamOpened" | "streamCredit" | "streamClosed" | "streams" }
>;
export const isAboutStreams = (message: FromAgent): message is AboutStreams =>
  message.type === "streamOpened" ||
  message.type === "streamCredit" ||
  message.type === "streamClosed" ||
  message.type === "streams";

type Mark = { mark: string; cost: number };
type Stream = {
  id: number;
  /** The agent's. */
  socket: WebSocket;
  resourceId: string;
  reader: Reader;
  openedAt: number;
  /** Called with null once the agent has opened it, otherwise with why it has not. */
  settle: (error: string | null) => void;
  /** The client's; undefined until the agent has opened the stream. */
  client: WebSocket | undefined;
  fromClient: Intake;
  fromAgent: Intake;
  /** Sent to the client and not answered yet, in order, and what was sent since the last one. */
  marks: Mark[];
  unmarked: number;
  pongAt: number;
  movedAt: number;
  texts: number[];
};

const openWithinMs = 15_000;
const heartbeatMs = 15_000;
const pongWithinMs = 60_000;
const idleMs = 60 * 60_000;
const longestMs = 24 * 60 * 60_000;
const perAccount = 20;
/** Beside marks, a client has few reasons for a text: a pong, a person who drags a window's corner. */
const textsWindow = { limit: 200, windowMs: 10_000 };

const tooMany = (of: string) =>
  `${of} has the maximum number of tunnels and terminals open: close one first.`;

/**
 * The tunnels and terminals of one host. Nothing is stored, and the clients' sockets do not hibernate: the object stays
 * in memory while a stream is open, for a day at most. If it is lost all the same, its clients are cut off, and the agent
 * hears at its next report that nobody knows its streams.
 */
export class HostStreams {
  private readonly send: (socket: WebSocket, message: ToAgent) => void;
  private readonly isAlive: () => boolean;
  private readonly workingOf: (readers: Reader[]) => Promise<Set<Reader>>;
  private readonly streams = new Map<number, Stream>();
  private heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(
    send: (socket: WebSocket, message: ToAgent) => void,
    isAlive: () => boolean,
    workingOf: (readers: Reader[]) => Promise<Set<Reader>>,
  ) {
    this.send = send;
    this.isAlive = isAlive;
    this.workingOf = workingOf;
  }

  /** The client's end, once the agent has opened the other. */
  async open(
    socket: WebSocket | undefined,
    target: StreamTarget,
    reader: Reader,
  ): Promise<WebSocket | Refused> {
    if (!socket || !this.isAlive()) return refused(offline);
    if (this.streams.size >= maxStreams) return refused(tooMany("This host"));
    const ofAccount = [...this.streams.values()].filter((one) => one.reader.accountId === reader.accountId);
    if (ofAccount.length >= perAccount) return refused(tooMany("Your account"));
    const now = Date.now();
    const [id = 0] = crypto.getRandomValues(new Uint32Array(1));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const error = await new Promise<string | null>((settle) => {
      timer = setTimeout(() => settle(slow), openWithinMs);
      this.streams.set(id, {
        id,
        socket,
        resourceId: target.kind === "database" ? target.databaseId : target.siteId,
        reader,
        openedAt: now,
        settle,
        client: undefined,
        fromClient: new Intake(),
        fromAgent: new Intake(),
        marks: [],
        unmarked: 0,
        pongAt: now,
        movedAt: now,
        texts: [],
      });
      this.send(socket, { type: "openStream", streamId: id, target });
    });
    clearTimeout(timer);
    const stream = this.streams.get(id);
    if (error !== null || !stream) {
      if (stream) this.forget(stream);
      return refused(error ?? offline);
    }
    return this.accept(stream);
  }

  /** false: a message or bytes of no stream that is open, which an agent rarely sends. */
  receive(socket: WebSocket, message: AboutStreams): boolean {
    if (message.type === "streams") {
      for (const streamId of message.open)
        if (this.streams.get(streamId)?.socket !== socket)
          this.send(socket, { type: "closeStream", streamId });
      return false;
    }
    const stream = this.of(socket, message.streamId);
    if (!stream) return false;
    switch (message.type) {
      case "streamOpened":
        stream.settle(null);
        return false;
      case "streamCredit": {
        const bytes = stream.fromClient.release(message.bytes);
        if (bytes > 0) tell(stream, { type: "credit", bytes });
        // Each one releases something, or it counts.
        return bytes > 0;
      }
      case "streamClosed": {
        const { error, exitCode } = message;
        this.streams.delete(stream.id);
        stream.settle(error ?? offline);
        if (stream.resourceId.startsWith("site_")) tell(stream, { type: "exit", exitCode });
        close(stream, error === null ? "ended" : "gone", error ?? "");
        this.rest();
        return false;
      }
      default:
        throw new Error(`Nobody handles ${(message satisfies never as AboutStreams).type}`);
    }
  }

  /** The same for a binary message. */
  receiveBytes(socket: WebSocket, frame: ArrayBuffer): boolean {
    const decoded = decodeFrame(new Uint8Array(frame));
    const stream = decoded && this.of(socket, decoded.streamId);
    if (!decoded || !stream?.client) return false;
    const cost = costOf(decoded.payload);
    if (!stream.fromAgent.admits(cost)) {
      this.end(stream, "gone", "The host sent more than the window allows.");
      return false;
    }
    stream.movedAt = Date.now();
    stream.client.send(decoded.payload);
    stream.unmarked += cost;
    if (stream.unmarked >= windowBytes / 4) this.mark(stream);
    return true;
  }

  /** The agent's socket is closed. */
  endAll(socket: WebSocket): void {
    for (const stream of this.streams.values())
      if (stream.socket === socket) this.end(stream, "hostOffline", "The host is offline.");
  }

  /** The site or database is gone from this host. */
  letGo(id: string): void {
    for (const stream of this.streams.values())
      if (stream.resourceId === id) this.end(stream, "gone", "It no longer exists on this host.");
  }

  private of(socket: WebSocket, id: number): Stream | undefined {
    const stream = this.streams.get(id);
    return stream?.socket === socket ? stream : undefined;
  }

  private accept(stream: Stream): WebSocket {
    const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    // Since 2026 the default is Blob.
    server.binaryType = "arraybuffer";
    server.accept();
    stream.client = server;
    server.addEventListener("message", ({ data }: MessageEvent) => {
      if (this.streams.get(stream.id) !== stream) return;
      const isFine =
        typeof data === "string"
          ? this.receiveText(stream, data)
          : this.receiveFromClient(stream, new Uint8Array(data as ArrayBuffer));
      if (!isFine)
        this.end(stream, "protocolError", "Not a message of this protocol, or more than the window.");
    });
    for (const type of ["close", "error"] as const)
      server.addEventListener(type, () => this.end(stream, "ended", ""));
    this.heartbeat ??= setInterval(() => this.beat(), heartbeatMs);
    return client;
  }

  private receiveFromClient(stream: Stream, payload: Uint8Array): boolean {
    if (payload.byteLength === 0 || payload.byteLength > maxPayloadBytes) return false;
    if (!stream.fromClient.admits(costOf(payload))) return false;
    stream.movedAt = Date.now();
    if (stream.socket.readyState === WebSocket.OPEN) stream.socket.send(encodeFrame(stream.id, payload));
    return true;
  }

  private receiveText(stream: Stream, text: string): boolean {
    const message = text.length <= 200 ? FromStreamClient.safeParse(jsonIn(text)).data : undefined;
    // As many of these as there were marks: a wrong one is the last.
    if (message?.type !== "consumed") {
      const { admitted, hits } = admit(stream.texts, Date.now(), textsWindow);
      stream.texts = hits;
      if (!admitted) return false;
    }
    switch (message?.type) {
      case undefined:
        return false;
      case "pong":
        stream.pongAt = Date.now();
        return true;
      case "resize":
        this.send(stream.socket, {
          type: "resizeStream",
          streamId: stream.id,
          columns: message.columns,
          rows: message.rows,
        });
        return true;
      case "consumed": {
        const first = stream.marks.shift();
        if (first?.mark !== message.mark) return false;
        const bytes = stream.fromAgent.release(first.cost);
        if (bytes > 0) this.send(stream.socket, { type: "streamCredit", streamId: stream.id, bytes });
        return true;
      }
      default:
        throw new Error(`Nobody handles ${(message satisfies never as FromStreamClient).type}`);
    }
  }

  private mark(stream: Stream): void {
    const mark = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
      byte.toString(16).padStart(2, "0"),
    ).join("");
    stream.marks.push({ mark, cost: stream.unmarked });
    stream.unmarked = 0;
    tell(stream, { type: "mark", mark });
  }

  private beat(): void {
    const now = Date.now();
    const isAlive = this.isAlive();
    for (const stream of this.streams.values()) {
      if (!stream.client) continue;
      if (!isAlive) this.end(stream, "hostOffline", "The host is offline.");
      else if (now - stream.pongAt > pongWithinMs)
        this.end(stream, "timedOut", "The client does not respond.");
      else if (now - stream.movedAt > idleMs) this.end(stream, "timedOut", "Nothing was sent for an hour.");
      else if (now - stream.openedAt > longestMs) this.end(stream, "timedOut", "It was open for a day.");
      else tell(stream, { type: "ping" });
    }
    this.endWithoutAccess().catch((error: unknown) => logError({ streams: this.streams.size }, error));
  }

  /** One query for all streams. */
  private async endWithoutAccess(): Promise<void> {
    const streams = [...this.streams.values()];
    const working = await this.workingOf(streams.map(({ reader }) => reader));
    for (const stream of streams)
      if (!working.has(stream.reader)) this.end(stream, "accessEnded", "The key or session has ended.");
  }

  private end(stream: Stream, code: keyof typeof streamCloseCodes, reason: string): void {
    if (this.streams.get(stream.id) !== stream) return;
    this.forget(stream);
    stream.settle(reason === "" ? offline : reason);
    close(stream, code, reason);
  }

  private forget(stream: Stream): void {
    this.streams.delete(stream.id);
    this.send(stream.socket, { type: "closeStream", streamId: stream.id });
    this.rest();
  }

  private rest(): void {
    if (this.streams.size > 0) return;
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }
}

function tell({ client }: Stream, message: ToStreamClient): void {
  if (client?.readyState === WebSocket.OPEN) client.send(JSON.stringify(message));
}

/** RFC 6455 has room for 123 bytes of a reason. */
function close({ client }: Stream, code: keyof typeof streamCloseCodes, reason: string): void {
  try {
    client?.close(streamCloseCodes[code], reason.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 120));
  } catch {
    // It is closed already.
  }
}

import type { Duplex } from "node:stream";
import {
  maxStreams,
  type FromAgent,
  type StreamTarget,
  type ToAgent,
} from "../../protocol/agent/messages.ts";
import { decodeFrame, encodeFrame } from "../../protocol/agent/stream-frames.ts";
import { Allowance, costOf, Intake, piecesOf } from "../../protocol/api/streams.ts";
import { log } from "../log.ts";

export type AboutStreams = Extract<
  ToAgent,
  { type: "openStream" | "streamCredit" | "resizeStream" | "closeStream" }
>;
export const isAboutStreams = (message: ToAgent): message is AboutStreams =>
  message.type === "openStream" ||
  message.type === "streamCredit" ||
  message.type === "resizeStream" ||
  message.type === "closeStream";

/** Where a stream's bytes go to and come from. */
export type Channel = {
  duplex: Duplex;
  resize?: (columns: number, rows: number) => Promise<void>;
  /** After its end; null: it did not end by itself, or has none. */
  exitCode: () => Promise<number | null>;
  /** Ends what the channel leads to, if that does not end with its bytes. */
  release: () => Promise<void>;
};
/** Why a stream cannot be opened, said to whoever asked for it. */
export class NotOpened extends Error {}
export type OpenChannel = (target: StreamTarget, signal: AbortSignal) => Promise<Channel>;

type Stream = {
  channel: Channel | undefined;
  ending: AbortController;
  /** What may be sent to the client, and what came from it. */
  allowance: Allowance;
  intake: Intake;
  /** What the client asked for last, until it is passed on. */
  size: { columns: number; rows: number } | undefined;
  isResizing: boolean;
};
type Link = { send(message: FromAgent): void; sendBytes(frame: Uint8Array): void };

/** How often the control plane is told of open streams, so that those that it has forgotten end. */
const reportMs = 30_000;
/** For a server to finish with what it was sent, after its client has left. */
const finishMs = 2000;

/** Carries bytes between the link and databases or terminals. Every stream ends with the link. */
export class StreamServer {
  private readonly openChannel: OpenChannel;
  private readonly streams = new Map<number, Stream>();
  private link: Link | undefined;
  private report: NodeJS.Timeout | undefined;

  constructor(openChannel: OpenChannel) {
    this.openChannel = openChannel;
  }

  connected(link: Link): void {
    this.link = link;
    this.report = setInterval(() => {
      if (this.streams.size > 0) link.send({ type: "streams", open: [...this.streams.keys()] });
    }, reportMs);
  }

  disconnected(): void {
    this.link = undefined;
    clearInterval(this.report);
    for (const id of this.streams.keys()) this.close(id);
  }

  receive(message: AboutStreams): void {
    const stream = this.streams.get(message.streamId);
    switch (message.type) {
      case "openStream":
        return this.open(message.streamId, message.target);
      case "streamCredit":
        return stream?.allowance.give(message.bytes);
      case "resizeStream":
        if (!stream) return;
        stream.size = message;
        return void this.resize(stream);
      case "closeStream":
        return this.close(message.streamId);
      default:
        message satisfies never;
    }
  }

  /** A binary message of the link. Bytes for a stream that has ended meanwhile are dropped. */
  receiveBytes(frame: Uint8Array): void {
    const decoded = decodeFrame(frame);
    if (!decoded) return;
    const { streamId, payload } = decoded;
    const stream = this.streams.get(streamId);
    if (!stream?.channel) return;
    const cost = costOf(payload);
    if (!stream.intake.admits(cost)) return this.fail(streamId, "More was sent than the host had consumed.");
    const { link } = this;
    stream.channel.duplex.write(payload, () => {
      const bytes = stream.intake.consume(cost);
      if (bytes > 0 && this.streams.get(streamId) === stream)
        link?.send({ type: "streamCredit", streamId, bytes });
    });
  }

  private open(streamId: number, target: StreamTarget): void {
    const { link } = this;
    if (!link) return;
    if (this.streams.size >= maxStreams || this.streams.has(streamId))
      return link.send({ type: "streamClosed", streamId, error: tooMany, exitCode: null });
    const stream: Stream = {
      channel: undefined,
      ending: new AbortController(),
      allowance: new Allowance(),
      intake: new Intake(),
      size: undefined,
      isResizing: false,
    };
    this.streams.set(streamId, stream);
    this.serve(streamId, stream, target, link).catch((error: unknown) => {
      const told = toldOf(error, target);
      if (told === undefined && !stream.ending.signal.aborted)
        log("error", "A stream broke", { kind: target.kind, error });
      this.fail(streamId, told ?? "The connection on the host broke: try again.");
    });
  }

  private async serve(streamId: number, stream: Stream, target: StreamTarget, link: Link): Promise<void> {
    const channel = await this.openChannel(target, stream.ending.signal);
    const { duplex } = channel;
    // Reported by the loop below, and of no interest after the end.
    duplex.on("error", () => undefined);
    if (this.streams.get(streamId) !== stream) return end(channel);
    stream.channel = channel;
    link.send({ type: "streamOpened", streamId });
    void this.resize(stream);
    for await (const chunk of duplex as AsyncIterable<Buffer>)
      for (const piece of piecesOf(chunk)) {
        if (!(await stream.allowance.take(costOf(piece)))) return;
        link.sendBytes(encodeFrame(streamId, piece));
      }
    const exitCode = await channel.exitCode();
    if (this.forget(streamId, stream)) link.send({ type: "streamClosed", streamId, error: null, exitCode });
  }

  /** One size at a time and the newest last: of two at once, the engine may apply the older one last. */
  private async resize(stream: Stream): Promise<void> {
    if (stream.isResizing) return;
    stream.isResizing = true;
    while (stream.channel?.resize && stream.size) {
      const { columns, rows } = stream.size;
      stream.size = undefined;
      await stream.channel
        .resize(columns, rows)
        .catch((error: unknown) => log("warn", "A terminal was not resized", { error }));
    }
    stream.isResizing = false;
  }

  private fail(streamId: number, error: string): void {
    if (!this.streams.has(streamId)) return;
    this.close(streamId);
    this.link?.send({ type: "streamClosed", streamId, error, exitCode: null });
  }

  private close(streamId: number): void {
    const stream = this.streams.get(streamId);
    if (stream) this.forget(streamId, stream);
  }

  /** false: it was closed before. */
  private forget(streamId: number, stream: Stream): boolean {
    if (this.streams.get(streamId) !== stream) return false;
    this.streams.delete(streamId);
    stream.ending.abort();
    stream.allowance.end();
    if (stream.channel)
      end(stream.channel).catch((error: unknown) => log("warn", "A stream was not released", { error }));
    return true;
  }
}

/** What is said of what may happen, and is no fault; undefined: it may not. */
function toldOf(error: unknown, { kind }: StreamTarget): string | undefined {
  if (error instanceof NotOpened) return error.message;
  // A database that ends without reading all that it was sent, as PostgreSQL does not read a client's good-bye of TLS.
  if (kind === "database" && (error as NodeJS.ErrnoException).code === "ECONNRESET")
    return "The server at the other end broke the connection off.";
  return undefined;
}

const tooMany = `The host has ${maxStreams} tunnels and terminals open: close one, or try again later.`;

/** What was written before still arrives. */
async function end({ duplex, release }: Channel): Promise<void> {
  duplex.end();
  // Nobody reads any more, and a server that waits for a reader would not read either.
  duplex.resume();
  const late = setTimeout(() => duplex.destroy(), finishMs);
  duplex.once("close", () => clearTimeout(late));
  await release();
}

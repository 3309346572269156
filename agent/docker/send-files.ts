import { closeSync, constants, openSync, readSync } from "node:fs";
import { Duplex } from "node:stream";
import protobuf from "protobufjs/minimal.js";

const { Reader, Writer } = protobuf;

/** One name of a folder that is sent. `path` is below that folder, with slashes. */
export type Entry = { path: string; modifiedMs: number } & (
  | { type: "folder"; permissions: number }
  | { type: "link"; leadsTo: string }
  /** @property from where it lies on this host, or what it holds */
  | { type: "file"; permissions: number; bytes: number; from: string | Buffer }
);

/** https://github.com/tonistiigi/fsutil/blob/master/types/wire.proto */
const packetTypes = { stat: 0, request: 1, data: 2, finish: 3, error: 4 };
/** Go's os.FileMode. */
const modes = { folder: 2 ** 31, link: 2 ** 27 };
const chunkBytes = 64 * 1024;
const pieceBytes = 256 * 1024;

/** A message of gRPC: whether it is compressed, its length, and itself. */
export function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The messages of gRPC that come in pieces. */
export class Frames {
  private rest: Buffer = Buffer.alloc(0);

  *read(piece: Uint8Array): Generator<Buffer> {
    this.rest = Buffer.concat([this.rest, piece]);
    while (this.rest.length >= 5) {
      const end = 5 + this.rest.readUInt32BE(1);
      if (this.rest.length < end) return;
      const message = this.rest.subarray(5, end);
      this.rest = this.rest.subarray(end);
      yield message;
    }
  }
}

/**
 * Sends a folder to BuildKit, which asks for what it does not have: fsutil's protocol, in messages of gRPC
 * (https://github.com/tonistiigi/fsutil/blob/master/receive.go). It holds one file open at most.
 * @param entries each after its folder, those of one folder in the order of the bytes of their names
 */
export class FileSender {
  private readonly entries: Iterator<Entry>;
  private readonly frames = new Frames();
  /** By its number, what may be asked for, once. */
  private readonly files = new Map<number, string | Buffer>();
  private readonly asked: number[] = [];
  private told = 0;
  private isListed = false;
  private isFinished = false;
  private isOver = false;
  private isAwaited = false;
  private sending: { id: number; from: number | Buffer; sent: number } | null = null;
  private readonly give: (piece: Buffer | null) => void;

  /** @param give hands over the next bytes for BuildKit; null: there are no more */
  constructor(entries: Iterable<Entry>, give: (piece: Buffer | null) => void) {
    this.entries = entries[Symbol.iterator]();
    this.give = give;
  }

  /** The next piece is waited for: it is given at once, or when BuildKit has asked for more. */
  take(): void {
    this.isAwaited = true;
    this.giveIfAwaited();
  }

  /** What BuildKit sent. */
  hear(bytes: Uint8Array): void {
    for (const message of this.frames.read(bytes)) {
      const { type, id } = readPacket(message);
      if (type === packetTypes.request) this.asked.push(id);
      if (type === packetTypes.finish || type === packetTypes.error) this.isFinished = true;
    }
    this.giveIfAwaited();
  }

  private giveIfAwaited(): void {
    if (!this.isAwaited) return;
    const piece = this.piece();
    if (piece.length === 0 && !this.isOver) return;
    this.isAwaited = false;
    this.give(piece.length > 0 ? piece : null);
  }

  private piece(): Buffer {
    const packets: Buffer[] = [];
    for (let bytes = 0; bytes < pieceBytes;) {
      const packet = this.next();
      if (packet === null) break;
      packets.push(framed(packet));
      bytes += packet.length;
    }
    return Buffer.concat(packets);
  }

  private next(): Uint8Array | null {
    if (this.isOver) return null;
    if (this.isFinished) {
      this.isOver = true;
      this.close();
      return packetOf(packetTypes.finish).finish();
    }
    if (this.sending !== null) return this.nextOf(this.sending);
    const id = this.asked.pop();
    if (id !== undefined) {
      const from = this.files.get(id);
      this.files.delete(id);
      if (from === undefined) throw new Error(`BuildKit asked for file ${id}, which it was not told of`);
      this.sending = { id, from: typeof from === "string" ? openFile(from) : from, sent: 0 };
      return this.nextOf(this.sending);
    }
    return this.isListed ? null : this.nextEntry();
  }

  private nextEntry(): Uint8Array {
    const { value: entry, done } = this.entries.next();
    const packet = packetOf(packetTypes.stat);
    if (done) {
      this.isListed = true;
      return packet.finish();
    }
    const number = this.told++;
    if (entry.type === "file") this.files.set(number, entry.from);
    writeStat(packet.uint32(18).fork(), entry).ldelim();
    return packet.finish();
  }

  /** Without data: the file is whole. */
  private nextOf(sending: NonNullable<typeof this.sending>): Uint8Array {
    const data = chunkOf(sending.from, sending.sent);
    sending.sent += data.length;
    if (data.length === 0) this.close();
    return packetOf(packetTypes.data).uint32(24).uint32(sending.id).uint32(34).bytes(data).finish();
  }

  close(): void {
    if (typeof this.sending?.from === "number") closeSync(this.sending.from);
    this.sending = null;
  }
}

/** The same as a stream: what is read goes to BuildKit, what is written came from it. */
export function sendingStream(entries: Iterable<Entry>): Duplex {
  const sender = new FileSender(entries, (piece) => void stream.push(piece));
  const stream = new Duplex({
    read: () => sender.take(),
    write(bytes: Buffer, _encoding, done) {
      try {
        sender.hear(bytes);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
  return stream;
}

const packetOf = (type: number) => Writer.create().uint32(8).int32(type);

function readPacket(message: Uint8Array): { type: number; id: number } {
  const reader = Reader.create(message);
  const packet = { type: 0, id: 0 };
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 8) packet.type = reader.int32();
    else if (tag === 24) packet.id = reader.uint32();
    else reader.skipType(tag & 7);
  }
  return packet;
}

/** https://github.com/tonistiigi/fsutil/blob/master/types/stat.proto. Everything is root's. */
function writeStat(writer: protobuf.Writer, entry: Entry): protobuf.Writer {
  const mode =
    entry.type === "link"
      ? modes.link + 0o777
      : (entry.permissions & 0o777) + (entry.type === "folder" ? modes.folder : 0);
  writer.uint32(10).string(entry.path).uint32(16).uint32(mode);
  writer.uint32(48).int64(Math.round(entry.modifiedMs * 1e6));
  if (entry.type === "file") writer.uint32(40).int64(entry.bytes);
  if (entry.type === "link") writer.uint32(58).string(entry.leadsTo);
  return writer;
}

/** A file of a repository, which is anybody's: no link is followed, and nothing waited for. */
export const openFile = (path: string): number =>
  openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);

function chunkOf(from: number | Buffer, at: number): Uint8Array {
  if (typeof from !== "number") return from.subarray(at, at + chunkBytes);
  const chunk = Buffer.allocUnsafe(chunkBytes);
  return chunk.subarray(0, readSync(from, chunk, 0, chunkBytes, null));
}

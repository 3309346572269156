import type { Duplex } from "node:stream";
import protobuf from "protobufjs";

/** https://github.com/tonistiigi/fsutil/blob/master/types */
const { root } = protobuf.parse(
  `syntax = "proto3";
  message Packet { int32 type = 1; Stat stat = 2; uint32 ID = 3; bytes data = 4; }
  message Stat { string path = 1; uint32 mode = 2; uint32 uid = 3; uint32 gid = 4; int64 size = 5; int64 modTime = 6; string linkname = 7; }`,
  { keepCase: true },
);
const Packet = root.lookupType("Packet");
type Stat = {
  path: string;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  modTime: number;
  linkname: string;
};
type Packet = { type: "STAT" | "REQ" | "DATA" | "FIN"; stat: Stat | null; ID: number; data: Buffer };
const types = ["STAT", "REQ", "DATA", "FIN"] as const;

export type Received = Stat & { text: string };

/** Of Go's os.FileMode: neither a folder, nor a link or other thing. */
const isFile = ({ mode }: Stat): boolean => (mode & 0x8f280000) === 0;

/**
 * What BuildKit would have of a folder that is sent to it, in the order in which it is told of it, and as strict as it is.
 * @param has what it has already, so that it does not ask for it
 */
export async function received(
  stream: Duplex,
  has: (stat: Stat) => boolean = () => false,
): Promise<Received[]> {
  const all: Received[] = [];
  const data = new Map<number, Buffer[]>();
  let isListed = false;
  const say = (type: (typeof types)[number], ID = 0): void => {
    const message = Packet.encode(Packet.create({ type: types.indexOf(type), ID })).finish();
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    // In two pieces, as they may come.
    stream.write(prefix);
    stream.write(message);
  };
  const finish = () => void (isListed && data.size === 0 && say("FIN"));
  for await (const packet of packetsOf(stream))
    switch (packet.type) {
      case "STAT":
        if (packet.stat === null) {
          isListed = true;
          finish();
          break;
        }
        demandOrder(all.at(-1)?.path, packet.stat.path, all);
        if (isFile(packet.stat) && !has(packet.stat)) {
          data.set(all.length, []);
          say("REQ", all.length);
        }
        all.push({ ...packet.stat, text: "" });
        break;
      case "DATA": {
        const pieces = data.get(packet.ID);
        const one = all[packet.ID];
        if (!pieces || !one) throw new Error(`File ${packet.ID} was not asked for`);
        pieces.push(packet.data);
        if (packet.data.length > 0) break;
        one.text = Buffer.concat(pieces).toString();
        data.delete(packet.ID);
        finish();
        break;
      }
      case "FIN":
        stream.end();
        break;
      case "REQ":
        throw new Error("Only BuildKit asks for files");
      default:
        packet.type satisfies never;
    }
  return all;
}

/** By their paths, links with what they lead to. */
export const textsOf = (all: readonly Received[]): Map<string, string> =>
  new Map(
    all.filter((one) => (one.mode & (2 ** 31)) === 0).map((one) => [one.path, one.linkname || one.text]),
  );

async function* packetsOf(stream: Duplex): AsyncGenerator<Packet> {
  let rest = Buffer.alloc(0);
  for await (const piece of stream as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      const packet = Packet.toObject(Packet.decode(rest.subarray(5, end)), { defaults: true, longs: Number });
      yield { ...packet, type: types[packet["type"] as number] } as Packet;
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) throw new Error("It ended within a message");
}

/** Each after its folder, and names of one folder by their bytes. */
function demandOrder(before: string | undefined, path: string, all: readonly Received[]): void {
  const parent = path.split("/").slice(0, -1).join("/");
  if (parent !== "" && !all.some((one) => one.path === parent && one.mode >= 2 ** 31))
    throw new Error(`${path} comes before its folder`);
  const parts = (text: string) => text.split("/").map((part) => Buffer.from(part));
  const [now, last] = [parts(path), before === undefined ? [] : parts(before)];
  const differs = now.findIndex((part, index) => !last[index] || !part.equals(last[index]));
  const [mine, its] = [now[differs], last[differs]];
  if (!mine || (its && Buffer.compare(mine, its) < 0)) throw new Error(`${path} comes after ${before}`);
}

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createInterface } from "node:readline";
import { createGunzip, createGzip } from "node:zlib";
import type { Fingerprint } from "../../protocol/agent/backups.ts";

/**
 * A volume's files as a compressed tar, by GNU tar: it keeps holes, hard links, attributes and access lists, follows no
 * link, and fails if a file cannot be read.
 */
const kept = ["--numeric-owner", "--sparse", "--acls", "--xattrs", "--xattrs-include=*"];
const packing = (folder: string) => [
  "--create",
  "--file=-",
  `--directory=${folder}`,
  "--format=posix",
  "--sort=name",
  "--one-file-system",
  // Times of reading and of other changes cannot be restored.
  "--pax-option=delete=atime,delete=ctime",
  "--warning=no-file-ignored",
  ...kept,
  ".",
];
const unpacking = (folder: string) => [
  "--extract",
  "--file=-",
  `--directory=${folder}`,
  "--preserve-permissions",
  "--same-owner",
  ...kept,
];
const listing = ["--list", "--verbose", "--file=-", "--numeric-owner", "--quoting-style=escape"];

/** Something changed while it was read, which is not a failure. */
const changedCode = 1;
const failedCode = 2;
const saidMax = 2000;

/** tar did not do it; the message is its own, which may name the tenant's files. */
export class TarError extends Error {
  override name = "TarError";
}

type Tar = { child: ChildProcess; ended: Promise<number> };

function tar(args: readonly string[], signal: AbortSignal): Tar {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC0" };
  const child = spawn("nice", ["-n", "19", "tar", ...args], { env, signal, killSignal: "SIGKILL" });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (said.length < saidMax) said += text;
  });
  // A program that ends early is noticed by its exit code.
  child.stdin.on("error", () => undefined);
  const ended = once(child, "close").then(([code]) => {
    signal.throwIfAborted();
    if (code === 0 || code === changedCode) return code;
    const reason = said.trim().split("\n")[0]?.slice(0, 300) || `tar ended with ${String(code)}`;
    // Otherwise it was killed, or could not be run.
    throw code === failedCode ? new TarError(reason) : new Error(reason);
  });
  ended.catch(() => undefined);
  return { child, ended };
}

/** Every write waits until the program has room, or has ended. */
async function write({ child, ended }: Tar, bytes: Buffer): Promise<void> {
  if (!child.stdin || child.stdin.destroyed || child.stdin.write(bytes)) return;
  await Promise.race([once(child.stdin, "drain"), ended]).catch(() => undefined);
}

/** Reads tar's own list of an archive: how many of each kind, and a checksum over names, owners, modes, sizes and links. */
function lister(signal: AbortSignal) {
  const list = tar(listing, signal);
  const found = { files: 0, folders: 0, "symbolic links": 0, "hard links": 0, "special files": 0 };
  const hash = createHash("sha256");
  const kinds: Record<string, keyof typeof found> = {
    "-": "files",
    d: "folders",
    l: "symbolic links",
    h: "hard links",
  };
  const read = (async () => {
    if (!list.child.stdout) return;
    for await (const line of createInterface({ input: list.child.stdout, crlfDelay: Infinity })) {
      hash.update(`${line}\n`);
      found[kinds[line[0] ?? ""] ?? "special files"]++;
    }
  })();
  read.catch(() => undefined);
  return {
    take: (bytes: Buffer) => write(list, bytes),
    stop: () => void list.child.kill("SIGKILL"),
    async end(): Promise<Fingerprint> {
      list.child.stdin?.end();
      await read;
      await list.ended;
      const rows = Object.values(found).reduce((sum, count) => sum + count, 0);
      return {
        tables: [
          {
            name: "entries",
            rows: String(rows),
            checksum: BigInt(`0x${hash.digest("hex").slice(0, 48)}`).toString(),
          },
        ],
        objects: Object.fromEntries(Object.entries(found).map(([kind, count]) => [kind, String(count)])),
        counters: [],
      };
    },
  };
}

type Archive = {
  /** The compressed bytes, to be read once. */
  bytes: AsyncIterable<Buffer>;
  /** What it contains; after the last byte. */
  contents(): Promise<Fingerprint>;
};

/** @param afterReading runs when the folder has been read to its end, before the last bytes are taken */
export function archive(
  folder: string,
  signal: AbortSignal,
  { beforeReading = async () => {}, afterReading = async () => {} } = {},
): Archive {
  let fingerprint: Promise<Fingerprint> | undefined;
  async function* read() {
    await beforeReading();
    const packer = tar(packing(folder), signal);
    const list = lister(signal);
    try {
      packer.child.stdin?.end();
      for await (const bytes of packer.child.stdout as AsyncIterable<Buffer>) {
        await list.take(bytes);
        yield bytes;
      }
      await packer.ended;
      fingerprint = list.end();
      await fingerprint;
    } finally {
      // Who reads may give up before the end.
      packer.child.kill("SIGKILL");
      list.stop();
      await afterReading();
    }
  }
  const gzip = createGzip({ level: 1 });
  return {
    bytes: piped(Readable.from(read(), { objectMode: false }), gzip),
    contents: () => fingerprint ?? Promise.reject(new Error("The archive was not read to its end")),
  };
}

/** What an archive of the folder would contain. */
export async function contentsOf(folder: string, signal: AbortSignal): Promise<Fingerprint> {
  const read = archive(folder, signal);
  for await (const _ of read.bytes);
  return read.contents();
}

/** Unpacks into an empty folder. @throws TarError if the bytes are no such archive, or a file cannot be written */
export async function unpack(
  bytes: AsyncIterable<Buffer>,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const unpacker = tar(unpacking(folder), signal);
  unpacker.child.stdout?.resume();
  try {
    for await (const part of piped(Readable.from(bytes, { objectMode: false }), createGunzip()))
      await write(unpacker, part);
  } catch (error) {
    unpacker.child.kill("SIGKILL");
    const { code, message } = error as NodeJS.ErrnoException;
    throw code?.startsWith("Z_") ? new TarError(message, { cause: error }) : error;
  }
  unpacker.child.stdin?.end();
  await unpacker.ended;
}

/** The bytes after the transformation, with the errors of both. */
async function* piped(source: Readable, through: NodeJS.ReadWriteStream): AsyncGenerator<Buffer> {
  const out = new PassThrough();
  const done = pipeline(source, through, out);
  done.catch(() => undefined);
  try {
    yield* out as AsyncIterable<Buffer>;
  } finally {
    source.destroy();
  }
  await done;
}

/** Bytes that a folder takes on its disk. */
export const bytesOf = (folder: string, signal: AbortSignal): Promise<number> =>
  new Promise((resolve, reject) => {
    execFile(
      "nice",
      ["-n", "19", "du", "-s", "-x", "--block-size=1", "--", folder],
      { signal },
      (error, out) => (error && error.code !== 1 ? reject(error) : resolve(Number.parseInt(out, 10) || 0)),
    );
  });

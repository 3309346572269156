import { randomUUID } from "node:crypto";
import http2, { type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import protobuf from "protobufjs/minimal.js";
import { framed, Frames } from "./send-files.ts";

/** The part of docker-modem used here: raw requests to the engine. */
export type Modem = { dial(options: object, callback: (error: Error | null, answer: unknown) => void): void };

export const dial = (modem: Modem, options: object): Promise<unknown> =>
  new Promise((resolve, reject) =>
    modem.dial(options, (error, answer) => (error ? reject(error) : resolve(answer))),
  );

/** What the engine may have during a build. */
type Offer = {
  secrets: ReadonlyMap<string, Uint8Array>;
  /** A folder by its name, and what of it is looked for (all of it: ""), as a stream that speaks the protocol of `FileSender`. */
  folder: (name: string, paths: string) => Duplex;
  /** What it is sent for another build of the same key, it need not be sent again. */
  sharedKey: string;
};

const methods = {
  secret: "/moby.buildkit.secrets.v1.Secrets/GetSecret",
  files: "/moby.filesync.v1.FileSync/DiffCopy",
  // The engine checks every five seconds and drops a session that does not answer.
  health: "/grpc.health.v1.Health/Check",
};
const [notFound, unimplemented] = [5, 12];
/** Of grpc.health.v1. */
const serving = Buffer.of(8, 1);

/**
 * A BuildKit session over a hijacked connection, on which the engine asks for secrets and files. Over Node's own HTTP/2: a library
 * for gRPC takes each message by itself, of which a large repository has some hundred thousand, in the agent's only thread.
 */
export async function openSession(modem: Modem, offer: Offer): Promise<{ id: string; close(): void }> {
  const id = randomUUID();
  const socket = (await dial(modem, {
    method: "POST",
    path: "/session",
    hijack: true,
    headers: {
      Upgrade: "h2c",
      "X-Docker-Expose-Session-Uuid": id,
      "X-Docker-Expose-Session-Name": "berth",
      "X-Docker-Expose-Session-Sharedkey": offer.sharedKey,
      "X-Docker-Expose-Session-Grpc-Method": [methods.secret, methods.files],
    },
    statusCodes: { 200: true, 500: "server error" },
  })) as Duplex;
  const session = http2.performServerHandshake(socket);
  // The build fails by itself where its session is gone.
  session.on("error", () => undefined);
  session.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    const text = (name: string) => String(headers[name] ?? "");
    answer(stream, text(":path"), offer, text).catch(() => stream.destroy());
  });
  // Node reads what came with the connection in the next tick, and throws there, uncaught, if the session is closed by then.
  await nextTurn();
  return {
    id,
    close: () => {
      session.destroy();
      socket.destroy();
    },
  };
}

async function answer(
  stream: ServerHttp2Stream,
  method: string,
  { secrets, folder }: Offer,
  header: (name: string) => string,
): Promise<void> {
  if (method === methods.files) {
    begin(stream);
    const files = folder(header("dir-name"), header("followpaths"));
    files.on("error", () => stream.destroy());
    stream.on("close", () => files.destroy());
    stream.pipe(files).pipe(stream);
    return;
  }
  const [request] = new Frames().read(await buffer(stream));
  if (method === methods.health) return end(stream, serving);
  if (method !== methods.secret) return refuse(stream, unimplemented, "no such method");
  const data = secrets.get(secretIn(request ?? Buffer.alloc(0)));
  if (data) end(stream, protobuf.Writer.create().uint32(10).bytes(data).finish());
  else refuse(stream, notFound, "no such secret");
}

const headers = { ":status": 200, "content-type": "application/grpc" };

function begin(stream: ServerHttp2Stream): void {
  stream.respond(headers, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
}

function end(stream: ServerHttp2Stream, message: Uint8Array): void {
  begin(stream);
  stream.end(framed(message));
}

function refuse(stream: ServerHttp2Stream, status: number, message: string): void {
  stream.respond({ ...headers, "grpc-status": String(status), "grpc-message": message }, { endStream: true });
}

/** The id in a GetSecretRequest. */
function secretIn(request: Uint8Array): string {
  const reader = protobuf.Reader.create(request);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 10) return reader.string();
    reader.skipType(tag & 7);
  }
  return "";
}

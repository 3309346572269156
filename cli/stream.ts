import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { WebSocket } from "ws";
import { connection, signal, userAgent } from "./context.ts";
import { Failure } from "./failure.ts";

/** Where the bytes of a stream go. `write` resolves once they are consumed: until then, the service holds more back. */
type Sink = { write(bytes: Uint8Array): Promise<void> };
/** A tunnel to a database or a terminal. */
export type Stream = {
  /** Resolves once more may be sent; false: the stream has ended. */
  send(bytes: Uint8Array): Promise<boolean>;
  resize(columns: number, rows: number): void;
  /** What has come is written first. `exitCode`: of a terminal's program. @throws Failure if it broke */
  ended: Promise<{ exitCode: number | null }>;
  close(): void;
};

const maxWaitMs = 60_000;

/** @param path below /api/v1 @throws ApiError if the service refuses, NetworkError */
export async function openStream(path: string, sink: Sink): Promise<Stream> {
  for (let waitedMs = 0; ;) {
    const opened = await attempt(path);
    if (!("retryMs" in opened)) return serve(opened, sink);
    waitedMs += opened.retryMs;
    if (waitedMs > maxWaitMs) throw opened.error;
    await delay(opened.retryMs, undefined, { signal });
  }
}

async function attempt(path: string): Promise<WebSocket | { retryMs: number; error: Error }> {
  const [ws, { errorOf, NetworkError }, { maxPayloadBytes }] = await Promise.all([
    // oxlint-disable-next-line no-restricted-imports -- Node's own WebSocket, since 22, sends no headers.
    import("ws"),
    import("../client/index.ts"),
    import("../client/schemas.ts"),
  ]);
  const { url, token } = connection();
  const address = new URL(`${url}/api/v1${path}`);
  const socket = new ws.WebSocket(`${url.replace(/^http/, "ws")}/api/v1${path}`, {
    headers: { "User-Agent": userAgent, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
    perMessageDeflate: false,
    maxPayload: 2 * maxPayloadBytes,
    handshakeTimeout: 30_000,
  });
  const stop = () => socket.terminate();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const answer = await new Promise<IncomingMessage | null>((resolve, reject) => {
      socket.once("open", () => {
        // Until serve() listens: some servers speak first.
        socket.pause();
        resolve(null);
      });
      socket.once("unexpected-response", (_, response) => resolve(response));
      socket.on("error", (error) =>
        reject(
          signal.aborted
            ? (signal.reason as Error)
            : new NetworkError(`${address.origin} cannot be reached: ${error.message}.`),
        ),
      );
    });
    if (answer === null) return socket;
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    const status = answer.statusCode ?? 500;
    const headers = { "Retry-After": answer.headers["retry-after"] ?? "" };
    const response = new Response(Buffer.concat(parts), { status, headers });
    Object.defineProperty(response, "url", { value: address.href });
    const error = await errorOf(response);
    if (error.code !== "rate_limited") throw error;
    return { retryMs: (error.retryAfterSeconds ?? 2) * 1000, error };
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function serve(socket: WebSocket, sink: Sink): Promise<Stream> {
  const { Allowance, costOf, piecesOf, streamCloseCodes, ToStreamClient } =
    await import("../client/schemas.ts");
  const allowance = new Allowance();
  let exitCode: number | null = null;
  /** What came is written in order; the service is told only then. */
  let written = Promise.resolve();
  const tell = (message: object) => {
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
  };
  const receive = (text: string) => {
    const message = ToStreamClient.parse(JSON.parse(text));
    if (message.type === "ping") tell({ type: "pong" });
    else if (message.type === "credit") allowance.give(message.bytes);
    else if (message.type === "exit") ({ exitCode } = message);
    else written = written.then(() => tell({ type: "consumed", mark: message.mark }));
  };
  socket.on("message", (data, isBinary) => {
    if (!isBinary) return receive((data as Buffer).toString());
    written = written.then(() => sink.write(data as Buffer)).catch(() => socket.close(1000));
  });
  const close = () => socket.close(1000);
  signal.addEventListener("abort", close, { once: true });
  const ended = new Promise<{ exitCode: number | null }>((resolve, reject) => {
    socket.once("close", (code, reason) => {
      signal.removeEventListener("abort", close);
      allowance.end();
      void written.then(() => {
        // 1005: closed by this end without a code in the answer.
        if (code === streamCloseCodes.ended || code === 1005) resolve({ exitCode });
        else
          reject(
            new Failure(reason.length > 0 ? reason.toString() : "The connection to the service was lost.", {
              hint: "Connect again. If the service cannot be reached, run berth doctor.",
            }),
          );
      });
    });
  });
  // It is looked at later, or never.
  ended.catch(() => undefined);
  socket.resume();
  return {
    async send(bytes) {
      for (const piece of piecesOf(bytes)) {
        if (!(await allowance.take(costOf(piece))) || socket.readyState !== socket.OPEN) return false;
        socket.send(piece);
      }
      return true;
    },
    resize: (columns, rows) => tell({ type: "resize", columns, rows }),
    ended,
    close,
  };
}

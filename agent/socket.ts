import { WebSocket, type ClientOptions } from "ws";
import {
  closeCodes,
  instanceHeader,
  linkDeadSeconds,
  maxFrameBytes,
  pingSeconds,
} from "../protocol/agent/messages.ts";

export type Socket = { send(message: string | Uint8Array): void; close(code: number): void };

/** How a connection ended: the close code, and the HTTP status if it was refused. */
export type SocketEnd = { code: number; status: number | null };

type Events = {
  onOpen(socket: Socket): void;
  onText(text: string): void;
  onBytes?(bytes: Uint8Array): void;
  onEnd(end: SocketEnd): void;
};

/**
 * An option missing in the types of ws: the time after which a closing connection is terminated, whatever the peer
 * does.
 */
type Options = ClientOptions & { closeTimeout: number };

/** One connection, alive as long as pings are answered. `onEnd` is called exactly once. */
export function openSocket(
  url: string,
  { token, instance }: { token: string; instance: string },
  events: Events,
): Socket {
  const options: Options = {
    headers: { Authorization: `Bearer ${token}`, [instanceHeader]: instance },
    perMessageDeflate: false,
    maxPayload: maxFrameBytes,
    handshakeTimeout: 10_000,
    // workerd keeps a closed connection open until the Durable Object sleeps; without this the agent would consider
    // itself connected.
    closeTimeout: 1000,
  };
  const socket = new WebSocket(url, options);
  let status: number | null = null;
  let answeredAt = performance.now();
  let ended = false;
  const end = (code: number) => {
    if (ended) return;
    ended = true;
    clearInterval(heartbeat);
    events.onEnd({ code, status });
  };
  const heartbeat = setInterval(() => {
    if (performance.now() - answeredAt > linkDeadSeconds * 1000) {
      socket.terminate();
      end(closeCodes.linkDead);
    } else if (socket.readyState === WebSocket.OPEN) socket.send("ping");
  }, pingSeconds * 1000);
  const own: Socket = {
    send: (message) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(message);
    },
    close: (code) => socket.close(code),
  };
  socket.on("open", () => events.onOpen(own));
  socket.on("unexpected-response", (request, response) => {
    status = response.statusCode ?? null;
    request.destroy();
    end(1006);
  });
  socket.on("message", (data, isBinary) => {
    if (isBinary) return events.onBytes?.(data as Buffer);
    const text = (data as Buffer).toString();
    if (text === "pong") answeredAt = performance.now();
    else events.onText(text);
  });
  // Followed by `close`.
  socket.on("error", () => undefined);
  socket.on("close", end);
  return own;
}

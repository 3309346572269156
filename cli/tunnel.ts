import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { signal } from "./context.ts";
import { usage } from "./failure.ts";
import { openStream } from "./stream.ts";

const leavingMs = 200;

export type Tunnel = { port: number; close: () => void };

/**
 * Listens on this computer only and carries each connection to the database, through the service.
 * @param port 0: any @param onError for a connection that could not be carried
 */
export async function openTunnel(
  databaseId: string,
  port: number,
  onError: (error: unknown) => void,
): Promise<Tunnel> {
  // By import(): in one file, what is imported here would be loaded by every command.
  const { createServer } = await import("node:net");
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    carry(databaseId, socket).catch((error: unknown) => {
      socket.destroy();
      if (!signal.aborted) onError(error);
    });
  });
  await listen(server, port);
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  signal.addEventListener("abort", close, { once: true });
  return { port: (server.address() as AddressInfo).port, close };
}

async function listen(server: Server, port: number): Promise<void> {
  if (port > 65_535) throw usage(`There is no port ${port}: the largest is 65535.`);
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    throw usage(
      `Port ${port} cannot be used on this computer: ${(error as Error).message}.`,
      "Give another one with --port, or omit it for any free port.",
    );
  }
}

async function carry(databaseId: string, socket: Socket): Promise<void> {
  const stream = await openStream(`/databases/${databaseId}/tunnel`, {
    write: (bytes) =>
      new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
  });
  socket.once("close", () => stream.close());
  if (socket.destroyed) stream.close();
  void stream.ended.then(
    () => socket.end(),
    () => undefined,
  );
  const sending = (async () => {
    for await (const chunk of socket as AsyncIterable<Buffer>) if (!(await stream.send(chunk))) return;
  })();
  // The program that connected may leave in whatever way.
  sending.catch(() => undefined);
  try {
    await stream.ended;
  } catch (error) {
    if (!(await hasLeft(socket))) throw error;
  }
}

/**
 * Whether the program at this end had said all it wanted: how the server ends its side then is no news to anybody. What it said last and
 * its end are two packets, between which the server's answer to the first may come.
 */
async function hasLeft(socket: Socket): Promise<boolean> {
  if (!socket.readableEnded && !socket.destroyed)
    await once(socket, "end", { signal: AbortSignal.timeout(leavingMs) }).catch(() => undefined);
  return socket.readableEnded || socket.errored !== null;
}

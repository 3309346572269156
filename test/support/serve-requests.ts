import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

/**
 * A handler of requests, such as the local Stripe, on its own port, over TLS with a certificate. An exception in it
 * breaks the connection.
 */
export async function serveRequests(
  handle: (request: Request) => Promise<Response>,
  certificate?: { key: string; cert: string },
): Promise<{ host: string; port: number; close(): Promise<void> }> {
  const listener: RequestListener = (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const method = incoming.method ?? "GET";
      const headers = new Headers(
        Object.entries(incoming.headers).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, [value].flat().join(", ")] as [string, string]],
        ),
      );
      const request = new Request(new URL(incoming.url ?? "/", "http://127.0.0.1"), {
        method,
        headers,
        ...(method !== "GET" && { body: Buffer.concat(chunks) }),
      });
      handle(request).then(
        async (response) => {
          outgoing.writeHead(response.status, Object.fromEntries(response.headers));
          outgoing.end(await response.text());
        },
        () => incoming.socket.destroy(),
      );
    });
  };
  const server = certificate ? createTlsServer(certificate, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: "127.0.0.1",
    port,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { setGlobalOptions } from "../../cli/context.ts";
import { openTunnel, type Tunnel } from "../../cli/tunnel.ts";
import { streamCloseCodes } from "../../protocol/api/streams.ts";

/** A service whose tunnels the test holds the other end of. */
let service: WebSocketServer;
let tunnel: Tunnel;
let onError: ReturnType<typeof vi.fn<(error: unknown) => void>>;
beforeEach(async () => {
  service = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(service, "listening");
  setGlobalOptions({ color: false, url: `http://127.0.0.1:${(service.address() as AddressInfo).port}` });
  onError = vi.fn<(error: unknown) => void>();
  tunnel = await openTunnel("db_001m80000000000000000000000", 0, onError);
});
afterEach(() => {
  tunnel.close();
  for (const one of service.clients) one.terminate();
  service.close();
});

async function connected() {
  const program = connect({ port: tunnel.port, host: "127.0.0.1" });
  const [server] = (await once(service, "connection")) as [WebSocket];
  return { program, server };
}
const reset = (server: WebSocket) => server.close(streamCloseCodes.gone, "The server broke it off.");

it("says nothing of a server that breaks the connection off once the program has left", async () => {
  const { program, server } = await connected();
  // As PostgreSQL does at the end of a session with TLS.
  server.once("message", () => reset(server));
  program.end("good-bye");
  await once(program.resume(), "close");
  await once(server, "close");
  expect(onError).not.toHaveBeenCalled();
});

it("says nothing of it either where the program leaves a moment later", async () => {
  const { program, server } = await connected();
  server.once("message", () => reset(server));
  program.write("good-bye");
  await once(server, "close");
  program.end();
  await once(program.resume(), "close");
  expect(onError).not.toHaveBeenCalled();
});

it("says why a connection ended that its program did not leave", async () => {
  const { program, server } = await connected();
  reset(server);
  await once(program.resume(), "close");
  await vi.waitUntil(() => onError.mock.calls.length > 0, { timeout: 15_000 });
  expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: "The server broke it off." }));
});

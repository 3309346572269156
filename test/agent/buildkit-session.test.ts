import { once } from "node:events";
import net from "node:net";
import { expect, it } from "vitest";
import { openSession } from "../../agent/docker/buildkit-session.ts";

it("a build that is cancelled while its session opens does not end the agent", async () => {
  const engine = net.createServer((connection) => void connection.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  await once(engine.listen(0, "127.0.0.1"), "listening");
  const socket = net.connect((engine.address() as net.AddressInfo).port, "127.0.0.1");
  await once(socket, "readable");
  const modem = {
    dial: (_: object, callback: (error: null, answer: unknown) => void) => callback(null, socket),
  };
  const folder = () => expect.unreachable();
  const session = await openSession(modem, { secrets: new Map(), folder, sharedKey: "" });
  session.close();
  // An exception in the meantime fails the run.
  await once(socket, "close");
  engine.close();
});

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * A network between a program and a service on this port, which a test breaks: a connection is reset as if a cable was
 * pulled, with what was on its way lost.
 */
export async function networkTo(port: number) {
  const near = new Set<Socket>();
  const network = {
    url: "",
    /** No connection is taken. */
    isDown: false,
    /** Until then, what a program sends is on its way. */
    delay: Promise.resolve(),
    /** How many connections were broken. */
    cuts: 0,
    /** After how many bytes of the answer to a request, such as `POST /api/v1/sites`, its connection breaks. */
    cutAfterBytes: (_request: string): number => Infinity,
    /** Works from now on. */
    mend(): void {
      Object.assign(network, { isDown: false, cuts: 0, cutAfterBytes: () => Infinity });
    },
    /** Breaks every connection that is open. */
    cut(): void {
      for (const socket of near) reset(socket);
    },
    close(): void {
      server.close();
      for (const socket of near) socket.destroy();
    },
  };
  const reset = (socket: Socket) => {
    if (socket.destroyed) return;
    network.cuts++;
    socket.resetAndDestroy();
  };
  const lead = async (socket: Socket) => {
    if (network.isDown) return void socket.resetAndDestroy();
    near.add(socket);
    await network.delay;
    const far = connect({ port, host: "127.0.0.1", noDelay: true });
    let leftBytes = Infinity;
    socket.on("data", (bytes) => {
      const request = /^([A-Z]+ \S+) HTTP\/1\.1\r\n/.exec(bytes.toString("latin1"))?.[1];
      if (request !== undefined) leftBytes = network.cutAfterBytes(request);
      if (!far.write(bytes)) socket.pause();
    });
    far.on("data", (bytes) => {
      const passed = bytes.subarray(0, leftBytes);
      leftBytes -= bytes.length;
      const hasRoom = socket.write(passed, () => leftBytes < 0 && reset(socket));
      if (!hasRoom || leftBytes < 0) far.pause();
    });
    far.on("drain", () => socket.resume());
    socket.on("drain", () => leftBytes >= 0 && far.resume());
    far.on("end", () => socket.end());
    socket.on("end", () => far.end());
    for (const one of [socket, far]) one.on("error", () => undefined);
    socket.once("close", () => {
      near.delete(socket);
      far.destroy();
    });
    far.once("close", () => socket.destroySoon());
  };
  const server = createServer({ noDelay: true }, (socket) => void lead(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  network.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return network;
}
export type Network = Awaited<ReturnType<typeof networkTo>>;

import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";

/** A file that is met like a port of the loopback address. */
export async function openWay(file: string, port: number): Promise<{ close(): Promise<void> }> {
  const open = new Set<{ destroy(): void }>();
  const server: Server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one
        .on("error", () => undefined)
        .on("close", () => {
          open.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  }).listen(file);
  await once(server, "listening");
  return {
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const one of open) one.destroy();
      await closed;
    },
  };
}

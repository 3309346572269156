import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The embedded mail service on the loopback interface: every mail becomes a file in the folder. Resolves once it listens. */
export async function startMailServer(folder: string, port: number): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let count = 0;
  const server = createServer((request, response) => {
    response.on("error", () => undefined);
    json(request)
      .then((mail) => {
        const name = `${new Date().toISOString().replaceAll(":", "-")}-${++count}.json`;
        writeFileSync(join(folder, name), `${JSON.stringify(mail, null, 2)}\n`, { mode: 0o600 });
        response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ id: name }));
      })
      // The service sends it again.
      .catch((error: unknown) => response.writeHead(error instanceof SyntaxError ? 400 : 500).end());
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
}

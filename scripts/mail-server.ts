import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The embedded mail service: every mail becomes a file. Usage: mail-server.ts <folder> <port> */
const [folder = "", port = ""] = process.argv.slice(2);
mkdirSync(folder, { recursive: true, mode: 0o700 });
let count = 0;
createServer((request, response) => {
  void json(request).then(
    (mail) => {
      const name = `${new Date().toISOString().replaceAll(":", "-")}-${++count}.json`;
      writeFileSync(join(folder, name), `${JSON.stringify(mail, null, 2)}\n`, { mode: 0o600 });
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ id: name }));
    },
    () => response.writeHead(400).end(),
  );
}).listen(Number(port), "127.0.0.1", () => process.stdout.write("listening\n"));
process.stdin.on("end", () => process.exit(0)).resume();

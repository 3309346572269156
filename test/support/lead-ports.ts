import { once } from "node:events";
import { connect, createServer } from "node:net";

/** In a network of its own: makes sockets of files into ports of the loopback address. Usage: lead-ports.ts <JSON: port and file of each> */
const ways = JSON.parse(process.argv[2] ?? "[]") as { port: number; file: string }[];
for (const { port, file } of ways) {
  const server = createServer((near) => {
    const far = connect(file);
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}
console.log("listening");
process.stdin.on("end", () => process.exit(0)).resume();

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleCli } from "../scripts/lib/bundle.ts";
import { median } from "./median.ts";

/** How long `berth` takes beside Node itself, each as a process of its own, in turns. */
const rounds = 41;
const folder = mkdtempSync(join(tmpdir(), "berth-startup-"));
const program = join(folder, "berth.mjs");
await bundleCli(program);
const server = createServer((_, response) =>
  response.setHeader("Content-Type", "application/json").end('{"data":[],"nextCursor":null}'),
).listen(0, "127.0.0.1");
await once(server, "listening");
const env = {
  PATH: process.env["PATH"],
  HOME: folder,
  BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  BERTH_TOKEN: "sk_bench",
};
const cases = {
  "node -e 0": ["-e", "0"],
  "berth --version": [program, "--version"],
  "berth --help": [program, "--help"],
  "berth sites list": [program, "sites", "list"],
};
const times = new Map<string, { wallMs: number; cpuMs: number }[]>(
  Object.keys(cases).map((name) => [name, []]),
);
const report =
  "data:text/javascript,process.once('exit',()=>{const{user,system}=process.cpuUsage();process.stderr.write('\\n'+(user+system)/1000)})";
for (let round = 0; round <= rounds; round++)
  for (const [name, args] of Object.entries(cases)) {
    const before = performance.now();
    const child = spawn(process.execPath, args, { env, stdio: "ignore" });
    await once(child, "close");
    const wallMs = performance.now() - before;
    const counted = spawn(process.execPath, ["--import", report, ...args], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let text = "";
    counted.stderr.on("data", (part: Buffer) => (text += part.toString()));
    await once(counted, "close");
    // The first round warms the caches of file system and code.
    if (round > 0) times.get(name)?.push({ wallMs, cpuMs: Number(text.trim().split("\n").at(-1)) });
  }
server.close();
rmSync(folder, { recursive: true });

const of = (name: string, field: "wallMs" | "cpuMs") =>
  median((times.get(name) ?? []).map((one) => one[field]));
for (const name of times.keys())
  console.log(
    `${name.padEnd(18)} ${of(name, "wallMs").toFixed(0).padStart(4)} ms, ${of(name, "cpuMs").toFixed(0).padStart(4)} ms of processors, ratio ${(of(name, "wallMs") / of("node -e 0", "wallMs")).toFixed(2)}, of processors ${(of(name, "cpuMs") / of("node -e 0", "cpuMs")).toFixed(2)}`,
  );

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { freePort } from "../../scripts/lib/state.ts";
import { Supervisor } from "../../scripts/lib/supervisor.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let supervisor: Supervisor;
beforeEach(() => {
  folder = temporaryFolder();
  supervisor = new Supervisor(folder);
});
afterEach(() => supervisor.stop());

/** Says in a file how often it was started; the first of them answers once and then takes connections only. */
const program = `
  import { existsSync, writeFileSync } from "node:fs";
  import http from "node:http";
  const [starts, port] = process.argv.slice(2);
  const isFirst = !existsSync(starts);
  writeFileSync(starts, isFirst ? "1" : "2");
  let answers = 0;
  http.createServer((request, response) => {
    if (!isFirst || answers++ === 0) response.end("ok");
  }).listen(Number(port), "127.0.0.1");
`;

it("a program that lives on and no longer answers is ended and started again", async () => {
  const [file, starts, port] = [join(folder, "program.mjs"), join(folder, "starts"), await freePort()];
  writeFileSync(file, program);
  const url = `http://127.0.0.1:${port}/`;
  await supervisor.start({
    name: "program",
    file,
    args: [starts, String(port)],
    answersAt: { url, withinMs: 2000 },
  });
  const startsSoFar = () => (existsSync(starts) ? readFileSync(starts, "utf8") : "0");
  await vi.waitUntil(() => startsSoFar() === "2", { timeout: 18_000 });
});

it("a program that finds its set-up wrong is not started again, and its last words are told", async () => {
  const file = join(folder, "program.mjs");
  writeFileSync(file, 'console.error("The database is of another version"); process.exit(78);');
  await expect(supervisor.start({ name: "program", file, args: [] }, "listening")).rejects.toThrow(
    /The database is of another version/,
  );
});

it("a program that does not end when it is asked to is killed after its time", async () => {
  const file = join(folder, "program.mjs");
  writeFileSync(
    file,
    `process.on("SIGTERM", () => undefined); setInterval(() => undefined, 1000); console.log("ready");`,
  );
  await supervisor.start({ name: "stubborn", file, args: [], endsWithinMs: 200 }, "ready");
  await supervisor.stop();
  await vi.waitFor(() =>
    expect(readFileSync(join(folder, "logs", "stubborn.log"), "utf8")).toContain("ended with SIGKILL"),
  );
});

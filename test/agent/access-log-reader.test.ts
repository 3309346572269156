import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { readAccessLog, type LogPosition } from "../../agent/running/access-log-reader.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let position: LogPosition | null;
beforeEach(() => {
  folder = temporaryFolder();
  position = null;
});

const log = () => join(folder, "requests.log");
const roll = (time: string) => renameSync(log(), join(folder, `requests-2026-11-23T10-46-${time}.000.log`));

/** What is new since the last time. */
async function read(failing = false): Promise<string[]> {
  const all: string[] = [];
  const take = (lines: string, after: LogPosition) => {
    if (failing) throw new Error("the disk is full");
    all.push(...lines.split("\n").slice(0, -1));
    position = after;
  };
  await readAccessLog(folder, position, take, new AbortController().signal);
  return all;
}

it("reads each whole line once, and half a line when it is whole", async () => {
  writeFileSync(log(), "one\ntwo\nthr");
  expect(await read()).toEqual(["one", "two"]);
  expect(await read()).toEqual([]);
  appendFileSync(log(), "ee\n");
  expect(await read()).toEqual(["three"]);
});

it("reads on through renamed files in their order, and removes what it has read", async () => {
  writeFileSync(log(), "one\n");
  expect(await read()).toEqual(["one"]);
  appendFileSync(log(), "two\n");
  roll("18");
  writeFileSync(log(), "three\n");
  roll("19");
  writeFileSync(log(), "four\n");
  expect(await read()).toEqual(["two", "three", "four"]);
  expect(readdirSync(folder)).toEqual(["requests.log"]);
});

it("begins with the oldest file there is when the one it had read is gone", async () => {
  writeFileSync(log(), "one\n");
  await read();
  rmSync(log());
  writeFileSync(log(), "three\n");
  roll("19");
  writeFileSync(log(), "four\n");
  expect(await read()).toEqual(["three", "four"]);
});

it("reads again what was not kept", async () => {
  writeFileSync(log(), "one\n");
  roll("18");
  writeFileSync(log(), "two\n");
  await expect(read(true)).rejects.toThrow("the disk is full");
  expect(await read()).toEqual(["one", "two"]);
});

it("passes over a line that is longer than Caddy writes, and a file that was cut short", async () => {
  writeFileSync(log(), `${"x".repeat(3 * 1024 * 1024)}\none\n`);
  expect((await read()).at(-1)).toBe("one");
  truncateSync(log());
  appendFileSync(log(), "two\n");
  expect(await read()).toEqual(["two"]);
});

it("there is nothing to read before Caddy has begun", async () => {
  expect(await read()).toEqual([]);
});

it("loses no line of a file that is renamed while files are listed", async () => {
  const lines = 3000;
  // The next file is there at once, and stays until it is read.
  const program = `const { appendFileSync, renameSync } = require("node:fs");
    const sleeping = new Int32Array(new SharedArrayBuffer(4));
    for (let number = 0; number < ${lines}; number++) {
      appendFileSync("requests.log", number + "\\n");
      if (number % 2 === 0) renameSync("requests.log", "requests-" + String(number).padStart(8, "0") + ".log");
      else Atomics.wait(sleeping, 0, 0, number % 5);
    }`;
  const writer = spawn(process.execPath, ["-e", program], { cwd: folder, stdio: "inherit" });
  const ended = once(writer, "exit");
  const all: string[] = [];
  while (writer.exitCode === null) {
    all.push(...(await read()));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await ended).toEqual([0, null]);
  all.push(...(await read()));
  expect(all).toEqual(Array.from({ length: lines }, (_, number) => String(number)));
});

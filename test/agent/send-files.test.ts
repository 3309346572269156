import { once } from "node:events";
import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { sendingStream } from "../../agent/docker/send-files.ts";
import { contextOf } from "../../agent/image-build/context.ts";
import { received, textsOf } from "../support/received.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
beforeEach(() => (folder = temporaryFolder()));

function write(name: string, content = name): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}
const sent = async (below: string | null = null) => sendingStream((await contextOf(folder, below))());

it("BuildKit has each file of a folder as it is, in its own order, as root's", async () => {
  // A folder's names come before those that begin as it does, and characters beyond U+FFFF after all others.
  const names = ["a/z", "a.txt", "a-b", "A", "é", "\uFFFD", "\u{1F600}/x", "empty", "..x", "-", "c d\ne"];
  for (const name of names) write(name, name === "empty" ? "" : name);
  write("large", "0123456789abcdef".repeat(100_000));
  chmodSync(write("run.sh"), 0o4755);
  symlinkSync("/etc/passwd", join(folder, "link"));
  symlinkSync("a", join(folder, "to-folder"));
  mkdirSync(join(folder, "nothing"));
  utimesSync(join(folder, "A"), 1_700_000_000.5, 1_700_000_000.5);
  for (const name of [".git/config", "sub/.git/config"]) write(name);

  const all = await received(await sent());
  const one = (path: string) => all.find((each) => each.path === path);
  expect(textsOf(all)).toEqual(
    new Map([
      ...names.map((name): [string, string] => [name, name === "empty" ? "" : name]),
      ["large", "0123456789abcdef".repeat(100_000)],
      ["run.sh", "run.sh"],
      ["link", "/etc/passwd"],
      ["to-folder", "a"],
      ["sub/.git/config", "sub/.git/config"],
    ]),
  );
  expect(all.every(({ uid, gid }) => uid === 0 && gid === 0)).toBe(true);
  expect(one("run.sh")).toMatchObject({ mode: 0o755, size: 6 });
  expect(one("A")?.modTime).toBe(1_700_000_000.5e9);
  expect(one("nothing")?.mode).toBe(2 ** 31 + 0o755);
  expect(one("link")?.mode).toBe(2 ** 27 + 0o777);
});

it("what it has already is not sent, and a folder may lie below another", async () => {
  for (const name of ["kept", "new"]) write(name);
  expect(textsOf(await received(await sent("source"), ({ path }) => path === "source/kept"))).toEqual(
    new Map([
      ["source/kept", ""],
      ["source/new", "new"],
    ]),
  );
});

it("thousands of files go through, of which it asks for all before it takes one", async () => {
  for (let number = 0; number < 3000; number++) write(`files/${number}`, `${number}`);
  const texts = textsOf(await received(await sent()));
  expect(texts.size).toBe(3000);
  expect(texts.get("files/2999")).toBe("2999");
});

it.each([
  ["a file that it was not told of", Buffer.of(0, 0, 0, 0, 4, 8, 1, 24, 9)],
  ["no packet", Buffer.of(0, 0, 0, 0, 2, 8, 255)],
])("a stream that is asked for %s fails, and nothing else does", async (_, message) => {
  const stream = sendingStream([]).resume();
  stream.write(message);
  const [error] = (await once(stream, "error")) as [Error];
  expect(error).toBeInstanceOf(Error);
  expect(stream.destroyed).toBe(true);
});

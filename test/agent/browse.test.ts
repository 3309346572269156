import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { browse, NotThere } from "../../agent/running/browse.ts";
import { Browsed } from "../../protocol/api/files.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** What happens to a path after it was looked at. */
let afterLook: (path: string) => void;
/** What was opened that is neither a file nor a folder, but not by O_PATH, of which no device or pipe hears. */
let acted: string[];
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const lstat = async (path: string) => {
    const found = await real.lstat(path);
    afterLook(path);
    return found;
  };
  const open = async (path: string, flags: number) => {
    const handle = await real.open(path, flags);
    const found = await handle.stat();
    if ((flags & 0o10000000) === 0 && !found.isFile() && !found.isDirectory()) acted.push(path);
    return handle;
  };
  return { ...real, lstat, open };
});

let folder: string;
let root: string;
beforeEach(() => {
  [afterLook, acted] = [() => undefined, []];
  folder = temporaryFolder();
  root = join(folder, "root");
  mkdirSync(join(root, "app", "deep"), { recursive: true });
  mkdirSync(join(root, "etc"));
  writeFileSync(join(root, "etc", "passwd"), "the site's own");
  writeFileSync(join(root, "app", "a.txt"), "hello");
  writeFileSync(join(folder, "outside"), "canary");
});

const textOf = async (path: string) => {
  const found = await browse(root, path);
  return found.kind === "file" ? found.text : found.entries.map(({ name }) => name);
};

it("a folder is listed by name with what is in it, and a file is read", async () => {
  symlinkSync("a.txt", join(root, "app", "link"));
  expect(await browse(root, "/app/")).toMatchObject({
    kind: "folder",
    path: "/app",
    entries: [
      { name: "a.txt", kind: "file", sizeBytes: 5 },
      { name: "deep", kind: "folder", sizeBytes: null },
      { name: "link", kind: "link", sizeBytes: null },
    ],
    truncated: false,
  });
  const file = { kind: "file", path: "/app/a.txt", sizeBytes: 5, text: "hello", truncated: false };
  expect(await browse(root, "app/./deep/../link")).toEqual(file);
});

it.each([
  ["/etc/passwd", "/etc/passwd"],
  ["../../../../../../etc/passwd", "/etc/passwd"],
  ["deep/../../etc/./passwd", "/etc/passwd"],
])("a link to %s leads within the root, to %s", async (target, path) => {
  symlinkSync(target, join(root, "app", "link"));
  expect(await browse(root, "/app/link")).toMatchObject({ path, text: "the site's own" });
});

it.each([
  "../outside",
  "/../outside",
  "/app/../../outside",
  "/app/up/outside",
  "/all/outside",
  "/app/fd/outside",
])("%s leads to nothing outside", async (path) => {
  symlinkSync("../..", join(root, "app", "up"));
  symlinkSync(folder, join(root, "all"));
  symlinkSync("/proc/self/cwd", join(root, "app", "fd"));
  await expect(browse(root, path)).rejects.toThrow(new NotThere("There is no such file or folder."));
});

it("links that lead to each other end, and so does what is no file", async () => {
  symlinkSync("b", join(root, "a"));
  symlinkSync("a", join(root, "b"));
  await expect(browse(root, "/a")).rejects.toThrow("Too many links");
  await expect(browse(root, "/app/a.txt/more")).rejects.toThrow("not a folder");
  execFileSync("mkfifo", [join(root, "pipe")]);
  await expect(browse(root, "/pipe")).rejects.toThrow("neither a file nor a folder");
});

it("files of the kernel are not shown", async () => {
  await expect(browse("/", "/proc/self/environ")).rejects.toThrow("kernel");
  await expect(browse("/", "/sys/kernel")).rejects.toThrow("kernel");
});

it("what is outside is not read while a folder and a link to it take turns", async () => {
  mkdirSync(join(root, "turn"));
  writeFileSync(join(root, "turn", "outside"), "inside");
  symlinkSync(folder, join(root, "other"));
  const seen = new Set<unknown>();
  const ended = new AbortController();
  const reading = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!ended.signal.aborted)
        seen.add(await textOf("/turn/outside").catch((error: Error) => error.message));
    }),
  );
  for (let turn = 0; turn < 2000; turn++) {
    renameSync(join(root, "turn"), join(root, "third"));
    renameSync(join(root, "other"), join(root, "turn"));
    renameSync(join(root, "third"), join(root, "other"));
    await new Promise((resolve) => setImmediate(resolve));
  }
  ended.abort();
  await reading;
  expect([...seen]).toContain("inside");
  expect([...seen]).not.toContain("canary");
});

it("what becomes a pipe or a device after it was looked at is not opened, as some devices act on that", async () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  afterLook = (path) => {
    if (path.endsWith("/a.txt")) renameSync(pipe, join(root, "app", "a.txt"));
  };
  await expect(browse(root, "/app/a.txt")).rejects.toThrow("It changed meanwhile: try again.");
  expect(acted).toEqual([]);
});

it("a file of any size and time is shown, with the nearest that an answer holds", async () => {
  // A file system in memory takes sparse files of any size, and times after the year 9999.
  const shm = mkdtempSync("/dev/shm/berth-browse-");
  onTestFinished(() => rmSync(shm, { recursive: true }));
  const huge = join(shm, "huge");
  writeFileSync(huge, "");
  execFileSync("truncate", ["--size", "9000000000000000000", huge]);
  utimesSync(huge, 300_000_000_000, 300_000_000_000);
  const folder = Browsed.parse(await browse(shm, "/"));
  expect(folder).toMatchObject({
    entries: [{ sizeBytes: Number.MAX_SAFE_INTEGER, modifiedAt: "9999-12-31T23:59:59.999Z" }],
  });
  expect(Browsed.parse(await browse(shm, "/huge"))).toMatchObject({
    sizeBytes: Number.MAX_SAFE_INTEGER,
    truncated: true,
  });
});

it("much is cut, and what is no text is not shown", async () => {
  for (let index = 0; index < 1005; index++) writeFileSync(join(root, "app", "deep", `${index}`), "");
  const many = await browse(root, "/app/deep");
  expect(many).toMatchObject({ truncated: true, entries: { length: 1000 } });
  writeFileSync(join(root, "long"), "é".repeat(100_001));
  const long = await browse(root, "/long");
  expect(long).toMatchObject({ truncated: true, sizeBytes: 200_002 });
  expect(long.kind === "file" && long.text?.endsWith("é")).toBe(true);
  truncateSync(join(root, "long"), 1024 ** 3);
  writeFileSync(join(root, "binary"), Buffer.from([1, 2, 0, 3]));
  writeFileSync(join(root, "latin"), Buffer.from([0x68, 0xe9, 0x68]));
  expect([await textOf("/binary"), await textOf("/latin")]).toEqual([null, null]);
});

import { constants, type Stats } from "node:fs";
import { open, opendir, lstat, readlink, statfs, type FileHandle } from "node:fs/promises";
import { maxEntries, maxFileBytes, type BrowsedEntry, type Browsed } from "../../protocol/api/files.ts";

/** What the path leads to cannot be shown, said to whoever asked. */
export class NotShown extends Error {}

/** There is nothing at the path. */
export class NotThere extends NotShown {}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** open(2); Node has no name for it. */
const O_PATH = 0o10000000;
/** Folders below each other. */
const maxDepth = 200;
/** The names of one answer, which crosses the link in one message. */
const maxNameBytes = 256 * 1024;
/** Links on the way, as in Linux (path_resolution(7)). */
const maxLinks = 40;
/** File systems whose files are the kernel's answers, not data: proc, sysfs, cgroup and cgroup2, debugfs, tracefs, bpf, mqueue, devpts. */
const kernelsOwn = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0xcafe4a11, 0x19800202, 0x1cd1,
]);

const itself = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`;
const within = (folder: FileHandle, name: string): string => `${itself(folder)}/${name}`;

/**
 * A folder's entries or a file's text, below a root that a hostile tenant writes to meanwhile. Every component is opened relative to the
 * one before it and never as a link; links are resolved here, within the root. So nothing outside it is ever opened, whatever changes.
 * No program runs in the container.
 * @param isStillIt asked once the root is open: whether it was what it was taken for
 * @throws NotShown
 */
export async function browse(
  root: string,
  path: string,
  isStillIt: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<Browsed> {
  const top = await open(root, O_RDONLY | O_DIRECTORY).catch(() => null);
  if (!top) throw new NotShown("The host cannot read it now.");
  const folders = [top];
  const here = () => folders.at(-1) as FileHandle;
  try {
    if (!(await isStillIt())) throw new NotShown("It changed meanwhile: try again.");
    const waiting = path.split("/").toReversed();
    const walked: string[] = [];
    let links = 0;
    for (;;) {
      const name = waiting.pop();
      if (name === undefined) return { ...(await folderOf(here())), path: `/${walked.join("/")}` };
      if (name === "" || name === ".") continue;
      if (name === "..") {
        if (folders.length > 1) await folders.pop()?.close();
        walked.pop();
        continue;
      }
      const found = await lstat(within(here(), name)).catch(() => null);
      if (!found) throw new NotThere("There is no such file or folder.");
      if (found.isSymbolicLink()) {
        if (++links > maxLinks) throw new NotShown("Too many links lead to each other.");
        const target = await readlink(within(here(), name)).catch(() => "");
        waiting.push(...target.split("/").toReversed());
        if (!target.startsWith("/")) continue;
        for (const folder of folders.splice(1)) await folder.close();
        walked.length = 0;
      } else if (found.isDirectory()) {
        if (folders.length > maxDepth) throw new NotShown("It is nested too deeply.");
        folders.push(await opened(here(), name, O_DIRECTORY));
        walked.push(name);
      } else if (!found.isFile()) throw new NotShown("It is neither a file nor a folder.");
      else if (waiting.some((rest) => rest !== "" && rest !== "."))
        throw new NotThere("Part of the path is not a folder.");
      else return { ...(await fileOf(here(), name)), path: `/${[...walked, name].join("/")}` };
    }
  } finally {
    for (const folder of folders) await folder.close();
  }
}

/**
 * It may have been replaced since it was looked at: neither a link is followed nor a pipe waited for, and no device hears of it,
 * as an image may hold any and some of the host's act on being opened.
 */
async function opened(folder: FileHandle, name: string, more: number): Promise<FileHandle> {
  const changed = new NotShown("It changed meanwhile: try again.");
  const held = await open(within(folder, name), O_PATH | O_NOFOLLOW | more).catch(() => null);
  if (!held) throw changed;
  try {
    const found = await held.stat();
    if (!found.isFile() && !found.isDirectory()) throw changed;
    const { type } = await statfs(itself(held));
    if (kernelsOwn.has(type)) throw new NotShown("It belongs to the kernel, not to the site.");
    const handle = await open(itself(held), O_RDONLY | O_NONBLOCK | more).catch(() => null);
    if (!handle) throw changed;
    return handle;
  } finally {
    await held.close();
  }
}

/** A tenant may give a file any of both: what an answer does not hold is told as the nearest that it does. */
const sizeOf = ({ size }: Stats): number => Math.min(size, Number.MAX_SAFE_INTEGER);
const lastMs = Date.parse("9999-12-31T23:59:59.999Z");
const modifiedAt = ({ mtimeMs }: Stats): string =>
  new Date(Math.max(0, Math.min(mtimeMs, lastMs))).toISOString();

const kindOf = (found: Stats): BrowsedEntry["kind"] =>
  found.isDirectory() ? "folder" : found.isFile() ? "file" : found.isSymbolicLink() ? "link" : "other";

async function folderOf(folder: FileHandle): Promise<Omit<Extract<Browsed, { kind: "folder" }>, "path">> {
  const entries: BrowsedEntry[] = [];
  let truncated = false;
  let bytes = 0;
  for await (const { name } of await opendir(itself(folder))) {
    bytes += Buffer.byteLength(JSON.stringify(name));
    if (entries.length === maxEntries || bytes > maxNameBytes) {
      truncated = true;
      break;
    }
    const found = await lstat(within(folder, name)).catch(() => null);
    if (!found) continue;
    entries.push({
      name: name.toWellFormed(),
      kind: kindOf(found),
      sizeBytes: found.isFile() ? sizeOf(found) : null,
      modifiedAt: modifiedAt(found),
    });
  }
  return { kind: "folder", entries: entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)), truncated };
}

async function fileOf(
  folder: FileHandle,
  name: string,
): Promise<Omit<Extract<Browsed, { kind: "file" }>, "path">> {
  const file = await opened(folder, name, 0);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new NotShown("It changed meanwhile: try again.");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxFileBytes), 0, maxFileBytes, 0);
    const bytes = buffer.subarray(0, bytesRead);
    const text = textOf(bytes);
    return { kind: "file", sizeBytes: sizeOf(found), text, truncated: found.size > bytesRead };
  } finally {
    await file.close();
  }
}

/** null: no text in UTF-8. A character that the end cuts is left out. */
function textOf(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return null;
  }
}

import { open, readdir, readFile, lstat } from "node:fs/promises";
import { join, relative } from "node:path";
import { JobError } from "../job.ts";
import { readOwn } from "./read-own.ts";

export const sourceLimits = { files: 100_000, megabytes: 1024 };
export type SourceLimits = typeof sourceLimits;

/** What a repository and its submodules hold together. */
export type Tally = { files: number; bytes: number };
/** A file that Git LFS keeps, as the repository names it. */
export type Pointer = { path: string; oid: string; size: number };

export const tooMany = (files: number): JobError =>
  new JobError(`The repository has more than ${files} files: leave out what can be generated or installed.`);
export const tooLarge = (megabytes: number): JobError =>
  new JobError(`The repository is larger than ${megabytes} MB: make it smaller.`);

const lfsPointer = "version https://git-lfs.github.com/spec/";
const wholePointer =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n$/;

/**
 * What would not build as its owner expects, or would take the host's disk with it, is refused. Where Git LFS is asked for,
 * the files it keeps are answered instead, and count with their size. @throws JobError that says so
 */
export async function checkSource(
  folder: string,
  limits = sourceLimits,
  wanted: { submodules?: boolean; lfs?: boolean } = {},
  tally: Tally = { files: 0, bytes: 0 },
): Promise<Pointer[]> {
  const modules = (await readOwn(folder, ".gitmodules")) ?? "";
  if (!wanted.submodules && /^[ \t]*\[submodule /m.test(modules))
    throw new JobError(
      "The repository has Git submodules: fetch them with the setting submodules, or put their files in the repository.",
    );
  let usesLfs = wanted.lfs === true;
  const pointers: Pointer[] = [];
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const entries = await readdir(next, { withFileTypes: true });
    // A folder's attributes are about what is in it and below it.
    const hasAttributes = entries.some(
      (entry) => entry.name === ".gitattributes" && (entry.isFile() || next === folder),
    );
    if (!usesLfs && hasAttributes)
      usesLfs = /filter=lfs/.test(
        (await readOwn(folder, relative(folder, join(next, ".gitattributes")))) ?? "",
      );
    for (const entry of entries) {
      if (next === folder && entry.name === ".git") continue;
      const path = join(next, entry.name);
      if (entry.isDirectory()) pending.push(path);
      if (++tally.files > limits.files) throw tooMany(limits.files);
      if (!entry.isFile()) continue;
      const { size } = await lstat(path);
      tally.bytes += size;
      if (usesLfs && size < 1024 && (await startsWith(path, lfsPointer))) {
        const name = path.slice(folder.length + 1);
        if (!wanted.lfs)
          throw new JobError(
            `${name} is kept by Git LFS: fetch such files with the setting lfs, or commit the file itself.`,
          );
        const [, oid, length] = wholePointer.exec(await readFile(path, "utf8")) ?? [];
        if (oid === undefined)
          throw new JobError(`${name} is not a readable Git LFS pointer: commit it again with Git LFS.`);
        pointers.push({ path: name, oid, size: Number(length) });
        tally.bytes += Number(length);
      }
      if (tally.bytes > limits.megabytes * 1024 * 1024) throw tooLarge(limits.megabytes);
    }
  }
  return pointers;
}

async function startsWith(path: string, text: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(text.length), 0, text.length, 0);
    return buffer.toString("latin1", 0, bytesRead) === text;
  } finally {
    await file.close();
  }
}

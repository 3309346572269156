import { open, readdir, readFile, lstat } from "node:fs/promises";
import { join } from "node:path";
import { JobError } from "../host.ts";

export const sourceLimits = { files: 100_000, megabytes: 1024 };

const lfsPointer = "version https://git-lfs.github.com/spec/";

/** What would not build as its owner expects, or would take the host's disk with it. @throws JobError that says so */
export async function checkSource(folder: string, limits = sourceLimits): Promise<void> {
  const modules = await readFile(join(folder, ".gitmodules"), "utf8").catch(() => "");
  if (/^\s*\[submodule /m.test(modules))
    throw new JobError(
      "The repository has Git submodules, which are not fetched: put their files into the repository, or remove .gitmodules.",
    );
  const attributes = await readFile(join(folder, ".gitattributes"), "utf8").catch(() => "");
  const usesLfs = /filter=lfs/.test(attributes);
  let [files, bytes] = [0, 0];
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true })) {
      if (next === folder && entry.name === ".git") continue;
      const path = join(next, entry.name);
      if (entry.isDirectory()) pending.push(path);
      if (++files > limits.files)
        throw new JobError(
          `The repository has more than ${limits.files} files: leave out what can be generated or installed.`,
        );
      if (!entry.isFile()) continue;
      const { size } = await lstat(path);
      bytes += size;
      if (bytes > limits.megabytes * 1024 * 1024)
        throw new JobError(`The repository is larger than ${limits.megabytes} MB: make it smaller.`);
      if (usesLfs && size < 1024 && (await startsWith(path, lfsPointer)))
        throw new JobError(
          `${path.slice(folder.length + 1)} is kept by Git LFS, which is not fetched: commit the file itself, or fetch it in the build.`,
        );
    }
  }
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

import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { checkSource, sourceLimits } from "../../agent/image-build/check-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

it("an ordinary repository passes, links and Git's own folder are not followed or counted", async () => {
  write("index.html", "hello");
  mkdirSync(join(folder, ".git"));
  write(".git/pack", "x");
  truncateSync(join(folder, ".git", "pack"), 2 * sourceLimits.megabytes * 1024 * 1024);
  symlinkSync("/", join(folder, "root"));
  symlinkSync("nowhere", join(folder, "dangling"));
  await checkSource(folder);
});

it("submodules are refused, an empty .gitmodules is not", async () => {
  write(".gitmodules", "");
  await checkSource(folder);
  write(".gitmodules", '[submodule "a"]\n\tpath = a\n\turl = https://git.example/a\n');
  await checkSource(folder, undefined, { submodules: true });
  await expect(checkSource(folder)).rejects.toThrow(/submodules: fetch them with the setting submodules/);
});

it("a file that Git LFS keeps is named; attributes without such a file pass", async () => {
  write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  write("data.bin", "the file itself");
  await checkSource(folder);
  write("data.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  await expect(checkSource(folder)).rejects.toThrow(/data\.bin is kept by Git LFS: fetch .* the setting lfs/);
});

it("a folder's own attributes are read as well as the repository's", async () => {
  mkdirSync(join(folder, "assets", "large"), { recursive: true });
  write("assets/large/data.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  await checkSource(folder);
  write("assets/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  await expect(checkSource(folder)).rejects.toThrow(/^assets\/large\/data\.bin is kept by Git LFS/);
});

it("where Git LFS is asked for, its files are answered and count with their own size", async () => {
  const oid = "a".repeat(64);
  const pointer = (size: number) =>
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
  write("data.bin", pointer(5));
  expect(await checkSource(folder, undefined, { lfs: true })).toEqual([{ path: "data.bin", oid, size: 5 }]);
  write("data.bin", pointer(sourceLimits.megabytes * 1024 * 1024));
  await expect(checkSource(folder, undefined, { lfs: true })).rejects.toThrow(/larger than 1024 MB/);
  write("data.bin", pointer(5).replace("oid", "sha"));
  await expect(checkSource(folder, undefined, { lfs: true })).rejects.toThrow(
    /data\.bin is not a readable Git LFS pointer/,
  );
});

it("a repository that is too large or of too many files is refused", async () => {
  write("large", "");
  truncateSync(join(folder, "large"), sourceLimits.megabytes * 1024 * 1024 + 1);
  await expect(checkSource(folder)).rejects.toThrow(/larger than 1024 MB/);
  rmSync(join(folder, "large"));
  mkdirSync(join(folder, "deep", "deeper"), { recursive: true });
  for (let file = 0; file < 10; file++) write(`deep/deeper/${file}`, "");
  await checkSource(folder, { files: 12, megabytes: 1 });
  await expect(checkSource(folder, { files: 11, megabytes: 1 })).rejects.toThrow(/more than 11 files/);
});

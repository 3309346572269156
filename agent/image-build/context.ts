import { lstatSync } from "node:fs";
import { sep } from "node:path";
import type { Readable } from "node:stream";
import tar from "tar-fs";
import tarStream from "tar-stream";
import { ignoredBy } from "./ignored.ts";
import { readOwn } from "./read-own.ts";

/**
 * The build context as a tar stream: the folder without `.git`, what is left out and what .dockerignore names, symbolic links as links.
 * The Dockerfile comes from memory and takes the place of one of that name.
 */
export async function packContext(
  folder: string,
  dockerfile: { name: string; text: string },
  below: string | null,
  isLeftOut: (name: string) => boolean = () => false,
): Promise<Readable> {
  const isIgnored = ignoredBy((await readOwn(folder, ".dockerignore")) ?? "");
  return tar.pack(folder, {
    dereference: false,
    finalize: false,
    ignore: (path) => {
      const name = path
        .slice(folder.length + 1)
        .split(sep)
        .join("/");
      if (name === "") return false;
      if (name === ".git" || name.startsWith(".git/") || (below === null && name === dockerfile.name))
        return true;
      return isLeftOut(name) || isIgnored(name, () => lstatSync(path).isDirectory());
    },
    map: (header) => ({
      ...header,
      uid: 0,
      gid: 0,
      name: below === null ? header.name : `${below}/${header.name}`,
    }),
    finish: (pack) => {
      pack.entry({ name: dockerfile.name }, dockerfile.text);
      pack.finalize();
    },
  });
}

/** A context of one file. */
export function packFile(name: string, text: string): Readable {
  const pack = tarStream.pack();
  pack.entry({ name }, text);
  pack.finalize();
  return pack;
}

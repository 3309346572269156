import { readdir } from "node:fs/promises";
import { folderInside, sourcesOf } from "../prepare.ts";
import { readOwn } from "../read-own.ts";
import { describe, type Described } from "./describe.ts";
import { exampleFile } from "./variables.ts";

/** What the thread is given to begin with. */
export type Given = { program: "inspect"; folder: string; rootDir: string | null };
export type FromThread = { type: "described"; described: Described };

/** What a repository says about how it is built. */
export async function inspectInThread({ folder, rootDir }: Given): Promise<Described> {
  const root = await folderInside(folder, rootDir);
  const names = await readdir(root);
  const examples = await Promise.all(
    names.filter((name) => exampleFile.test(name)).map((name) => readOwn(root, name)),
  );
  return describe(await sourcesOf(folder, root, rootDir), {
    dockerfile: await readOwn(root, "Dockerfile"),
    examples: examples.filter((text) => text !== null),
    prisma: await readOwn(root, "prisma/schema.prisma"),
  });
}

import { readdir } from "node:fs/promises";
import { folderInside, sourcesOf } from "../prepare.ts";
import { readOwn } from "../read-own.ts";
import { describe, type Described } from "./describe.ts";
import { fitting } from "./fitting.ts";
import { exampleFile } from "./variables.ts";

/** What a reader is given to begin with. */
export type Given = { program: "inspect"; folder: string; rootDir: string | null };

/** What a repository says about how it is built. */
export async function inspectInReader({ folder, rootDir }: Given): Promise<Described> {
  const root = await folderInside(folder, rootDir);
  const names = await readdir(root);
  const examples = await Promise.all(
    names.filter((name) => exampleFile.test(name)).map((name) => readOwn(root, name)),
  );
  const described = describe(await sourcesOf(folder, root, rootDir), {
    dockerfile: await readOwn(root, "Dockerfile"),
    examples: examples.filter((text) => text !== null),
    prisma: await readOwn(root, "prisma/schema.prisma"),
  });
  return fitting(described);
}

import { readdir } from "node:fs/promises";
import { folderInside, sourcesOf, usualDockerfile } from "../prepare.ts";
import { readOwn } from "../read-own.ts";
import { describe, type Described } from "./describe.ts";
import { fitting } from "./fitting.ts";
import { exampleFile } from "./variables.ts";

/** What a reader is given to begin with. */
export type Given = { program: "inspect"; folder: string; rootDir: string | null };

/** What a repository says about how it is built. */
export async function inspectInReader({ folder, rootDir }: Given): Promise<Described> {
  const root = await folderInside(folder, rootDir);
  const entries = await readdir(root, { withFileTypes: true });
  const examples = await Promise.all(
    entries.filter(({ name }) => exampleFile.test(name)).map(({ name }) => readOwn(root, name)),
  );
  const own = usualDockerfile(entries);
  const described = describe(await sourcesOf(folder, root, rootDir), {
    dockerfile: own === null ? null : await readOwn(root, own),
    examples: examples.filter((text) => text !== null),
    prisma: await readOwn(root, "prisma/schema.prisma"),
  });
  return fitting(described);
}

import { lstatSync, readdirSync, readlinkSync, type Dirent } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../docker/send-files.ts";
import { ignoredBy } from "./ignored.ts";
import { readOwn } from "./read-own.ts";

/** A build context: each call goes through it from the beginning. */
export type Context = () => Iterable<Entry>;

/** By the first of these files that is there. */
async function ignoredByFirst(folder: string, names: string[]): Promise<ReturnType<typeof ignoredBy>> {
  for (const name of names) {
    const text = await readOwn(folder, name);
    if (text !== null) return ignoredBy(text, undefined, name);
  }
  return ignoredBy("");
}

/**
 * What is built of a folder: all but `.git`, what is left out and what .dockerignore names. Symbolic links are links.
 * @param below the name under which it lies in the context; null: it is the context
 * @param dockerfile the repository's own: a .dockerignore by its name goes before that of the folder
 */
export async function contextOf(
  folder: string,
  below: string | null,
  isLeftOut: (name: string) => boolean = () => false,
  dockerfile: string | null = null,
): Promise<Context> {
  const isIgnored = await ignoredByFirst(
    folder,
    dockerfile === null ? [".dockerignore"] : [`${dockerfile}.dockerignore`, ".dockerignore"],
  );

  function* entriesIn(name: string): Generator<Entry> {
    for (const found of inByteOrder(readdirSync(join(folder, name), { withFileTypes: true }))) {
      const inner = name === "" ? found.name : `${name}/${found.name}`;
      if (inner === ".git" || isLeftOut(inner) || isIgnored(inner, () => found.isDirectory())) continue;
      const from = join(folder, inner);
      const stats = lstatSync(from);
      const common = { path: below === null ? inner : `${below}/${inner}`, modifiedMs: stats.mtimeMs };
      if (stats.isDirectory()) {
        yield { ...common, type: "folder", permissions: stats.mode };
        yield* entriesIn(inner);
      } else if (stats.isSymbolicLink()) yield { ...common, type: "link", leadsTo: readlinkSync(from) };
      else if (stats.isFile())
        yield { ...common, type: "file", permissions: stats.mode, bytes: stats.size, from };
    }
  }

  return function* context() {
    if (below !== null)
      yield { path: below, type: "folder", permissions: 0o755, modifiedMs: lstatSync(folder).mtimeMs };
    yield* entriesIn("");
  };
}

/** That of UTF-8, which JavaScript's own is not for all characters. */
function inByteOrder(found: Dirent[]): Dirent[] {
  const bytes = new Map(found.map(({ name }) => [name, Buffer.from(name).toString("latin1")]));
  const of = ({ name }: Dirent): string => bytes.get(name) ?? "";
  return found.sort((a, b) => (of(a) < of(b) ? -1 : 1));
}

import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../docker/send-files.ts";
import { ignoredBy } from "./ignored.ts";
import { readOwn } from "./read-own.ts";

/** A build context: each call goes through it from the beginning. */
export type Context = () => Iterable<Entry>;

/**
 * What is built of a folder: all but `.git`, what is left out and what .dockerignore names. Symbolic links are links.
 * @param below the name under which it lies in the context; null: it is the context
 */
export async function contextOf(
  folder: string,
  below: string | null,
  isLeftOut: (name: string) => boolean = () => false,
): Promise<Context> {
  const isIgnored = ignoredBy((await readOwn(folder, ".dockerignore")) ?? "");

  function* entriesIn(name: string): Generator<Entry> {
    for (const last of inByteOrder(readdirSync(join(folder, name)))) {
      const inner = name === "" ? last : `${name}/${last}`;
      if (inner === ".git" || isLeftOut(inner)) continue;
      const from = join(folder, inner);
      const stats = lstatSync(from);
      if (isIgnored(inner, () => stats.isDirectory())) continue;
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
function inByteOrder(names: string[]): string[] {
  const bytes = new Map(names.map((name) => [name, Buffer.from(name).toString("latin1")]));
  const of = (name: string): string => bytes.get(name) ?? "";
  return names.sort((a, b) => (of(a) < of(b) ? -1 : 1));
}

import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import tarStream, { type Headers } from "tar-stream";
import type { Engine } from "./engine.ts";

/** Enough of /etc/passwd. */
const maxFileBytes = 1024 * 1024;

/** A file of a container, running or not; empty if there is none. */
export async function fileIn(engine: Engine, id: string, path: string): Promise<string> {
  const files = await engine.readFiles(id, path);
  let found = "";
  if (files)
    await readEntries(files, async ({ size = 0 }, content) => {
      if (size <= maxFileBytes) found = await text(content);
      return false;
    });
  return found;
}

/** Reads entry by entry until `take` has enough: a volume may hold gigabytes. */
export function readEntries(
  files: Readable,
  take: (header: Headers, content: Readable) => Promise<boolean>,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const tar = tarStream.extract();
    tar.on("entry", (header, content, next) => {
      take(header, content as Readable).then((goOn) => {
        if (!goOn) return resolve();
        content.resume();
        next();
      }, reject);
    });
    tar.on("finish", resolve).on("error", reject);
    files.on("error", reject).pipe(tar);
  }).finally(() => files.destroy());
}

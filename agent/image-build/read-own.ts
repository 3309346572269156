import { constants } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { JobError } from "../job.ts";

const mostBytes = 1024 * 1024;

/**
 * The text of a file that is the repository's own; null when there is none. A repository is anybody's: a link may lead to a
 * device that never ends, or to a file of the host. @throws JobError when it is something else
 */
export async function readOwn(folder: string, name: string): Promise<string | null> {
  const path = join(folder, name);
  if ((await lstat(path).catch(() => null)) === null) return null;
  const found = await realpath(path).catch(() => null);
  if (found === null || !found.startsWith((await realpath(folder)) + sep)) throw noFile(name);
  const file = await open(found, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => null,
  );
  if (file === null) throw noFile(name);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw noFile(name);
    if (stats.size > mostBytes) throw new JobError(`The file ${name} is larger than 1 MB: make it smaller.`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

const noFile = (name: string) =>
  new JobError(
    `The file ${name} does not exist in the repository, only a folder or a link out of it by that name: commit the file itself.`,
  );

import { isUtf8 } from "node:buffer";
import { JobError } from "../job.ts";
import { tooMany } from "./check-source.ts";
import { git } from "./git.ts";

/** No ordinary repository comes near it: with the submodules' own and the host's folder, less than the 4,096 that Linux allows. */
const longestPath = 800;
/** Mode, type, object and size, which go before a path. */
const longestAbout = 100;

/**
 * The files of a commit, as `ls-tree -r -z` lists them, before one is written: a few kilobytes of a repository may stand for any number
 * of files, and for paths that nothing but Git can read or remove.
 * @param onFile gets what is said of a file before its path, and answers why there are to be no more
 * @throws JobError
 */
export async function listTree(
  args: string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  mostFiles: number,
  onFile: (about: string, path: string) => JobError | null,
): Promise<{ code: number; stderr: string }> {
  let [files, rest] = [0, ""];
  let refused = null as JobError | null;
  const listed = await git(args, env, signal, (text) => {
    const entries = (rest + text).split("\0");
    rest = entries.pop() ?? "";
    for (const entry of entries) {
      const tab = entry.indexOf("\t");
      const path = Buffer.from(entry.slice(tab + 1), "latin1");
      refused ??=
        ++files > mostFiles
          ? tooMany(mostFiles)
          : (refusalOf(path) ?? onFile(entry.slice(0, tab), path.toString()));
    }
    if (rest.length > longestPath + longestAbout)
      refused ??= refusalOf(Buffer.from(rest.slice(rest.indexOf("\t") + 1), "latin1"));
    return refused === null;
  });
  if (refused) throw refused;
  return listed;
}

function refusalOf(path: Buffer): JobError | null {
  if (path.length > longestPath)
    return new JobError(
      `The repository has a path of more than ${longestPath} bytes (${path.toString().slice(0, 60)}…): shorten the names of its folders and files.`,
    );
  return isUtf8(path)
    ? null
    : new JobError(
        `The name ${path.toString()} in the repository is not UTF-8, which image builds require: rename it, for example with git mv.`,
      );
}

import { JobError } from "../job.ts";
import { tooMany } from "./check-source.ts";
import { git } from "./git.ts";

/** No ordinary repository comes near it: with the submodules' own and the host's folder, less than the 4,096 that Linux allows. */
export const longestPath = 800;
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
      refused ??=
        ++files > mostFiles
          ? tooMany(mostFiles)
          : (refusalOf(entry.slice(tab + 1)) ?? onFile(entry.slice(0, tab), entry.slice(tab + 1)));
    }
    if (rest.length > longestPath + longestAbout) refused ??= refusalOf(rest.slice(rest.indexOf("\t") + 1));
    return refused === null;
  });
  if (refused) throw refused;
  return listed;
}

const refusalOf = (path: string): JobError | null =>
  Buffer.byteLength(path) <= longestPath
    ? null
    : new JobError(
        `The repository has a path of more than ${longestPath} bytes (${path.slice(0, 60)}…): shorten the names of its folders and files.`,
      );

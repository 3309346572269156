import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { HostSettings } from "../../host.ts";
import { wholeCommit } from "../../../protocol/commit.ts";
import { maxBranches, maxBranchName } from "../../../protocol/inspection-limits.ts";
import { sourceLimits } from "../check-source.ts";
import { atEither, noCommitIn, reach, refusalOf, type GitSource, type Reached } from "../fetch-source.ts";
import { git, gitEnvironment } from "../git.ts";
import { listTree } from "../list-tree.ts";
import { deepest, isRead } from "../read-sources.ts";
import { exampleFile } from "./variables.ts";

/** What is read of a repository: its branches, the names of its files, and the texts that say how it is built. */
type Outline = {
  commit: string;
  branch: string | null;
  defaultBranch: string | null;
  branches: string[];
};

const mostPlaced = 20_000;
const mostRead = 400;
/** Nothing in them means anything in a list of patterns. */
const plainPath = /^[\w@.+-][\w@.+ ()-]*(?:\/[\w@.+-][\w@.+ ()-]*)*$/;
const others = /^(?:[Dd]ockerfile|prisma\/schema\.prisma)$/;

/**
 * Makes `folder` look like the repository: files that detection reads with their texts, the others empty. Their contents are not
 * fetched where the Git host can leave them out. @throws JobError with a sentence for the owner
 */
export const outlineOf = (
  source: GitSource,
  rootDir: string | null,
  folder: string,
  settings: HostSettings,
  signal: AbortSignal,
): Promise<Outline> =>
  atEither(source, async (one) => {
    const reached = await reach(one, `${folder}.home`, settings, signal);
    await mkdir(`${folder}.home`, { recursive: true });
    const [listed, cloned] = await Promise.allSettled([
      listBranches(reached, one),
      clone(reached, one, folder),
    ]);
    // Neither writes any more.
    if (cloned.status === "rejected") throw cloned.reason;
    if (listed.status === "rejected") throw listed.reason;
    const commit = await placeFiles(reached, one, rootDir, folder, signal);
    return { ...listed.value, commit, branch: one.branch ?? listed.value.defaultBranch };
  });

const isShort = (name: string): boolean => name.length <= maxBranchName;

async function listBranches(
  { url, run }: Reached,
  source: GitSource,
): Promise<Pick<Outline, "defaultBranch" | "branches">> {
  const { code, stdout, stderr } = await run("ls-remote", "--symref", "--", url, "HEAD", "refs/heads/*");
  if (code !== 0) throw refusalOf(stderr, source);
  const defaultBranch = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(stdout)?.slice(1).find(isShort) ?? null;
  const all = [...stdout.matchAll(/\trefs\/heads\/(\S+)$/gm)].map(([, name = ""]) => name).filter(isShort);
  const branches = all.filter((name) => name !== defaultBranch).slice(0, maxBranches - 1);
  return { defaultBranch, branches: [...(defaultBranch === null ? [] : [defaultBranch]), ...branches] };
}

async function clone({ url, run }: Reached, source: GitSource, folder: string): Promise<void> {
  const branch = source.branch === null ? [] : ["--branch", source.branch];
  const how = [
    "--quiet",
    "--depth",
    "1",
    "--single-branch",
    "--no-tags",
    "--no-checkout",
    "--filter=blob:none",
  ];
  const cloned = await run("clone", ...how, ...branch, "--", url, folder);
  if (cloned.code !== 0) throw refusalOf(cloned.stderr, source);
}

async function placeFiles(
  { options, run }: Reached,
  source: GitSource,
  rootDir: string | null,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const inFolder = [...options, "-C", folder];
  const local = gitEnvironment(`${folder}.home`, "none", null);
  const head = await git([...inFolder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"], local, signal);
  const commit = head.stdout.trim();
  if (head.code !== 0 || !wholeCommit.test(commit)) throw noCommitIn(source);
  const files = await listFiles(inFolder, local, signal);
  const below = rootDir === null ? "" : `${rootDir.replace(/\/$/, "")}/`;
  const within = (path: string) => (below !== "" && path.startsWith(below) ? path.slice(below.length) : path);
  const placed = files.filter((path) => within(path).split("/").length <= deepest).slice(0, mostPlaced);
  const wanted = placed.filter((path) => [path, within(path)].some(isWanted)).slice(0, mostRead);
  await mkdir(join(folder, ".git", "info"), { recursive: true });
  await writeFile(
    join(folder, ".git", "info", "sparse-checkout"),
    wanted.map((path) => `/${path}\n`).join(""),
  );
  // By this, what is missing is fetched at once, and not file by file.
  const sparse = ["-c", "core.sparseCheckout=true", "-c", "core.sparseCheckoutCone=false"];
  const read = await run(...sparse, "-C", folder, "read-tree", "-mu", "HEAD");
  if (read.code !== 0) throw refusalOf(read.stderr, source);
  const there = new Set(wanted);
  const empty = placed.filter((path) => !there.has(path));
  for (const parent of new Set(empty.map((path) => dirname(path)))) {
    signal.throwIfAborted();
    await mkdir(join(folder, parent), { recursive: true });
  }
  for (const path of empty) await writeFile(join(folder, path), "", { flag: "wx" });
  return commit;
}

const isWanted = (path: string): boolean =>
  plainPath.test(path) && (isRead(path) || others.test(path) || exampleFile.test(path));

/** Its own files, without links and submodules. */
async function listFiles(inFolder: string[], env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<string[]> {
  const files: string[] = [];
  const take = (about: string, path: string): null => {
    if (/^100(?:644|755) blob \w+$/.test(about) && !/(?:^|\/)(?:\.{0,2}|\.git)(?:\/|$)/i.test(path))
      files.push(path);
    return null;
  };
  await listTree([...inFolder, "ls-tree", "-r", "-z", "HEAD"], env, signal, sourceLimits.files, take);
  return files;
}

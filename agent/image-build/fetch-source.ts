import { mkdir } from "node:fs/promises";
import { wholeCommit } from "../../protocol/commit.ts";
import type { HostSettings } from "../host.ts";
import { JobError } from "../job.ts";
import { publicAddressOf } from "./address.ts";
import { tooLarge, type SourceLimits } from "./check-source.ts";
import { git, gitEnvironment, gitOptions, maxMegabytes, memoryMegabytes, quietSeconds } from "./git.ts";
import { listTree } from "./list-tree.ts";

export type GitSource = {
  address: string;
  branch: string | null;
  token: string | null;
  /** Left out: the newest of the branch. */
  commit?: string | undefined;
};
type Fetched = { commit: string; commitMessage: string };

export type Reached = Awaited<ReturnType<typeof reach>>;

/** Git at the source's host: checked address, pinned name, nothing but this one protocol. */
export async function reach(source: GitSource, home: string, settings: HostSettings, signal: AbortSignal) {
  const slash = source.address.indexOf("/");
  const [host, path] = [source.address.slice(0, slash), source.address.slice(slash + 1)];
  const local = settings.insecureGitHosts.includes(host);
  const { hostname, port } = new URL(`https://${host}`);
  if (!local && port !== "")
    throw new JobError(`Git hosts are reached on port 443 only: leave the port out of ${host}.`);
  const scheme = local ? "http" : "https";
  const pin = local ? null : `${hostname}:443:${await publicAddressOf(hostname)}`;
  const env = gitEnvironment(home, scheme, source.token);
  const options = gitOptions(scheme, pin);
  return {
    url: `${scheme}://${host}/${path}`,
    options,
    run: (...args: string[]) => git([...options, ...args], env, signal),
  };
}

class Redirected extends JobError {}
const redirects = /redirect|returned error: 30\d/i;

/** Once more with `.git` at the end, where a host redirects: GitLab does so to an address without it. */
export async function atEither<T>(source: GitSource, work: (source: GitSource) => Promise<T>): Promise<T> {
  try {
    return await work(source);
  } catch (error) {
    if (!(error instanceof Redirected) || source.address.endsWith(".git")) throw error;
    return work({ ...source, address: `${source.address}.git` });
  }
}

type Where = { settings: HostSettings; workDirectory: string };

/** The commit that the source's branch is at, without fetching anything; null where Git does not say. */
export const newestCommit = (
  host: Where,
  source: GitSource,
  { signal }: { signal: AbortSignal },
): Promise<string | null> =>
  atEither(source, (one) => askForCommit(host, one, signal)).catch((error: unknown) => {
    if (error instanceof Redirected) return null;
    throw error;
  });

async function askForCommit(
  { settings, workDirectory }: Where,
  source: GitSource,
  signal: AbortSignal,
): Promise<string | null> {
  const { url, run } = await reach(source, workDirectory, settings, signal);
  const ref = source.branch === null ? "HEAD" : `refs/heads/${source.branch}`;
  const { code, stdout, stderr } = await run("ls-remote", "--quiet", "--", url, ref);
  signal.throwIfAborted();
  if (code !== 0 && redirects.test(stderr.replaceAll(source.address, ""))) throw refusalOf(stderr, source);
  const line = stdout.split("\n").find((one) => one.endsWith(`\t${ref}`));
  const commit = line?.split("\t")[0] ?? "";
  return code === 0 && wholeCommit.test(commit) ? commit : null;
}

/**
 * The commit that is asked for, or the newest of the branch, checked out into `folder` (made by this call) without its history.
 * @throws JobError with a sentence for the owner
 */
export const fetchSource = (
  source: GitSource,
  folder: string,
  settings: HostSettings,
  signal: AbortSignal,
  limits: SourceLimits,
): Promise<void> => atEither(source, (one) => fetchFrom(one, folder, settings, signal, limits));

async function fetchFrom(
  source: GitSource,
  folder: string,
  settings: HostSettings,
  signal: AbortSignal,
  limits: SourceLimits,
): Promise<void> {
  const home = `${folder}.home`;
  const reached = await reach(source, home, settings, signal);
  await mkdir(home, { recursive: true });

  if (source.commit !== undefined) {
    await fetchCommit(reached, source, source.commit, folder);
    return checkOut(source, "FETCH_HEAD", folder, reached.options, limits, signal);
  }
  const branch = source.branch === null ? [] : ["--branch", source.branch];
  const cloned = await reached.run(
    "clone",
    "--quiet",
    "--template=",
    "--depth",
    "1",
    "--single-branch",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-checkout",
    ...branch,
    "--",
    reached.url,
    folder,
  );
  if (cloned.code !== 0) throw refusalOf(cloned.stderr, source);
  await checkOut(source, "HEAD", folder, reached.options, limits, signal);
}

async function checkOut(
  source: GitSource,
  commit: "HEAD" | "FETCH_HEAD",
  folder: string,
  options: string[],
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<void> {
  const inFolder = [...options, "-C", folder];
  const env = gitEnvironment(`${folder}.home`, "none", null);
  let bytes = 0;
  const count = (about: string): JobError | null => {
    bytes += Number(/^\d+ blob \w+ +(\d+)$/.exec(about)?.[1] ?? 0);
    return bytes > limits.megabytes * 1024 * 1024 ? tooLarge(limits.megabytes) : null;
  };
  const list = [...inFolder, "ls-tree", "-r", "-l", "-z", commit];
  const listed = await listTree(list, env, signal, limits.files, count);
  // Nothing was pushed yet, which is told later.
  if (/Not a valid object name/.test(listed.stderr)) return;
  if (listed.code !== 0) throw refusalOf(listed.stderr, source);
  const written = await git([...inFolder, "checkout", "--quiet", "--detach", commit], env, signal);
  if (written.code !== 0) throw refusalOf(written.stderr, source);
}

async function fetchCommit(
  { url, run }: Reached,
  source: GitSource,
  commit: string,
  folder: string,
): Promise<void> {
  const how = ["--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules"];
  for (const args of [
    ["init", "--quiet", "--template=", ...(commit.length === 64 ? ["--object-format=sha256"] : []), folder],
    ["-C", folder, "fetch", ...how, "--", url, commit],
  ]) {
    const done = await run(...args);
    if (/not our ref|unadvertised object/i.test(done.stderr))
      throw new JobError(
        `The commit ${commit.slice(0, 12)} is not, or no longer, in ${source.address}: push it, or deploy the site again.`,
      );
    if (done.code !== 0) throw refusalOf(done.stderr, source);
  }
}

/** A host may name a default branch that nothing was pushed to, beside others. */
export const noCommitIn = ({ address, branch }: GitSource): JobError =>
  new JobError(
    `The repository ${address} is empty${branch === null ? ", or its default branch is" : ""}: push a commit first${branch === null ? ", or choose another branch" : ""}.`,
  );

/** Which commit was fetched. @throws JobError when there is none */
export async function describeSource(
  source: GitSource,
  folder: string,
  signal: AbortSignal,
): Promise<Fetched> {
  const env = gitEnvironment(`${folder}.home`, "none", null);
  const head = await git(["-C", folder, "log", "-1", "--format=%H%n%s"], env, signal);
  const [commit = "", subject = ""] = head.stdout.split("\n");
  if (!wholeCommit.test(commit)) throw noCommitIn(source);
  return { commit, commitMessage: subject.slice(0, 500) };
}

export function refusalOf(printed: string, source: GitSource): JobError {
  // Git repeats the address, which may say anything: a port with 401 in it, a repository named after 404.
  const stderr = printed.replaceAll(source.address, "");
  const Refusal = redirects.test(stderr) ? Redirected : JobError;
  return new Refusal(saidOf(stderr, source));
}

function saidOf(stderr: string, { address, branch }: GitSource): string {
  if (/Remote branch .* not found/i.test(stderr))
    return `The branch or tag ${branch} does not exist in ${address}: choose another one, or push it.`;
  if (/not found|does not exist|\b404\b/i.test(stderr))
    return `The repository ${address} does not exist, or is private: check the address, or set gitToken.`;
  if (/Authentication failed|could not read Username|\b40[13]\b/i.test(stderr))
    return `The repository ${address} needs a token: set gitToken to one that may read it, as name:token if its host requires a specific name.`;
  if (/Could not resolve|Connection refused|timed out|Failed to connect|SSL|certificate/i.test(stderr))
    return `The Git host of ${address} could not be reached: check the address, or try again later.`;
  if (/Operation too slow/.test(stderr))
    return `The Git host of ${address} sent next to nothing for ${quietSeconds} seconds: try again later, or make the repository smaller.`;
  if (/File size limit|SIGXFSZ|too large/i.test(stderr))
    return `The repository ${address} is larger than ${maxMegabytes} MB: make it smaller.`;
  if (/out of memory|mmap failed|unable to create thread/i.test(stderr))
    return `The repository ${address} takes more than ${memoryMegabytes} MB of memory to fetch: make its files smaller.`;
  const [, object, why] = /^error: object ([0-9a-f]{12})[0-9a-f]*: (.{1,300})$/m.exec(stderr) ?? [];
  if (object !== undefined)
    return `The repository ${address} could not be fetched, because Git refuses its object ${object} (${why}): find it with git fsck, and commit its content anew.`;
  if (redirects.test(stderr)) return `The Git host of ${address} redirects: use the address it redirects to.`;
  const last = stderr.trim().split("\n").at(-1) ?? "";
  return `The repository ${address} could not be fetched: ${last.slice(0, 300)}`;
}

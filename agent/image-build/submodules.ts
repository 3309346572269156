import { lstat, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { JobError } from "../job.ts";
import { git, gitEnvironment } from "./git.ts";

type Submodule = { path: string; url: string; commit: string };

/** The submodules of the commit that is checked out, at the commits it names. Git itself fetches none of them. */
export async function submodulesOf(folder: string, signal: AbortSignal): Promise<Submodule[]> {
  const env = { ...gitEnvironment(`${folder}.home`, "none", null), GIT_LITERAL_PATHSPECS: "1" };
  const inFolder = (...args: string[]) => git(["-C", folder, ...args], env, signal);
  if ((await inFolder("cat-file", "-e", "HEAD:.gitmodules")).code !== 0) return [];
  const listed = await inFolder("config", "--blob", "HEAD:.gitmodules", "--null", "--list");
  if (listed.code !== 0) throw new JobError("The file .gitmodules cannot be read: correct it.");
  const named = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.stdout.split("\0")) {
    const [, name, field, value] = /^submodule\.(.+)\.(path|url)\n(.*)$/s.exec(entry) ?? [];
    if (name !== undefined && field !== undefined) named.set(name, { ...named.get(name), [field]: value });
  }
  const modules: Submodule[] = [];
  for (const { path, url } of named.values()) {
    if (path === undefined || url === undefined) continue;
    requireInside(path);
    const { stdout } = await inFolder("ls-tree", "-z", "HEAD", "--", path);
    const [, commit, found] = /^160000 commit ([0-9a-f]{40,64})\t([^\0]*)\0$/.exec(stdout) ?? [];
    // As Git does: what .gitmodules names and the commit does not hold is no submodule.
    if (commit !== undefined && found === path) modules.push({ path, url, commit });
  }
  return modules;
}

function requireInside(path: string): void {
  const parts = path.split("/");
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\\]/.test(path) || parts.some((part) => /^(\.{0,2}|\.git|git~\d+)$/i.test(part)))
    throw new JobError(
      `The submodule path ${JSON.stringify(path.slice(0, 200))} leads out of the repository: change it in .gitmodules.`,
    );
}

/** Moves what was fetched to where the repository has its empty folder. No link on the way is followed. */
export async function placeSubmodule(folder: string, path: string, fetched: string): Promise<void> {
  const refused = new JobError(
    `The submodule path ${JSON.stringify(path)} is not an empty folder of the repository: change it in .gitmodules.`,
  );
  let at = folder;
  for (const part of path.split("/")) {
    at = join(at, part);
    const found = await lstat(at).catch(() => null);
    if (!found?.isDirectory()) throw refused;
  }
  await rm(join(fetched, ".git"), { recursive: true, force: true });
  await rmdir(at).catch(() => {
    throw refused;
  });
  await rename(fetched, at);
}

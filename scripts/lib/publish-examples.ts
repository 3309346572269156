import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { projectRoot } from "./project-root.ts";
import { run, succeeds } from "./command.ts";

/** A fixed author and time, so that an unchanged example is the same commit in every state directory. */
const author = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Berth",
  GIT_AUTHOR_EMAIL: "examples@berth.localhost",
  GIT_COMMITTER_NAME: "Berth",
  GIT_COMMITTER_EMAIL: "examples@berth.localhost",
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z",
};

/**
 * Publishes each folder of examples/ as a bare repository below `root`/examples; a changed folder becomes another
 * commit.
 */
export async function publishExamples(root: string): Promise<void> {
  const folder = join(projectRoot, "examples");
  for (const name of readdirSync(folder))
    await publishFolder(join(folder, name), join(root, "examples", `${name}.git`));
}

/** A folder as a bare repository; one that has changed is one commit more. What a .gitignore names is left out. */
export async function publishFolder(folder: string, bare: string): Promise<void> {
  const name = basename(folder);
  // An earlier start may have been cut off at any point; of a repository that is there, this changes nothing.
  await run("git", ["init", "--quiet", "--bare", "--initial-branch=main", bare], { env: author });
  const isNew = !(await succeeds("git", [`--git-dir=${bare}`, "rev-parse", "--verify", "refs/heads/main"]));
  const work = mkdtempSync(join(tmpdir(), "berth-example-"));
  try {
    const git = (...args: string[]) => run("git", ["-C", work, ...args], { env: author });
    if (isNew) {
      await git("init", "--quiet", "--initial-branch=main");
      await git("remote", "add", "origin", bare);
    } else {
      await run("git", ["clone", "--quiet", bare, work], { env: author });
      await git("rm", "--quiet", "-r", "--ignore-unmatch", ".");
    }
    // It may be a clone itself.
    cpSync(folder, work, { recursive: true, filter: (path) => path !== join(folder, ".git") });
    await git("add", "--all");
    if ((await git("status", "--porcelain")) === "") return;
    await git("commit", "--quiet", "-m", isNew ? `Add ${name}` : `Change ${name}`);
    await git("push", "--quiet", "origin", "main");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

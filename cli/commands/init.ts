import { existsSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { Client, ProjectFile } from "../../client/index.ts";
import { command } from "../command.ts";
import { connect, connection, signal } from "../context.ts";
import { usage } from "../failure.ts";
import { writeWhole } from "../files.ts";
import { checkoutRoot, currentBranch, originAddress } from "../git.ts";
import { projectFileName } from "../project-file.ts";
import { fileOf } from "../project/plan.ts";
import { actualOf } from "../project/state.ts";
import { findSite, namedSite } from "../site.ts";
import { bold, dim, safe, say, showValue, spin } from "../terminal.ts";

/** A site's name from a repository's. */
export const nameFrom = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 40) || "site";

export const init = command(
  "init",
  "Write berth.json from this checkout's site, or from what the service detects in its repository",
  "projectFile",
)
  .option("--name <name>", "of a new site; default: that of the repository")
  .option("--root-dir <folder>", "the app's folder in the repository")
  .option("--force", "replace the file")
  .action(async ({ name, rootDir, force }) => {
    const folder = (await checkoutRoot()) ?? process.cwd();
    const file = join(folder, projectFileName);
    if (existsSync(file) && !force)
      throw usage(
        `${file} already exists.`,
        "Add --force to replace it; `berth diff` compares it with the site.",
      );
    const client = await connect();
    const site = await namedSite();
    const content: ProjectFile = {
      $schema: `${connection().url}/install/berth.schema.json`,
      ...(site === undefined || name !== undefined
        ? await detected(client, { name, rootDir })
        : await existing(client, site)),
    };
    writeWhole(file, `${JSON.stringify(content, null, 2)}\n`, 0o644);
    showValue("projectFile", { file, content }, () => `Wrote ${bold(safe(relative(process.cwd(), file)))}.`);
    say(dim("Edit it as you like; `berth diff` shows what it would change, `berth up` applies it."));
  });

async function existing(client: Client, named: string): Promise<ProjectFile> {
  const site = await findSite(client, named);
  const { databases, schedules } = await actualOf(client, site.name);
  return fileOf(site, { databases, schedules });
}

async function detected(
  client: Client,
  { name, rootDir }: { name: string | undefined; rootDir: string | undefined },
): Promise<ProjectFile> {
  const repository = await originAddress();
  if (repository === null)
    throw usage(
      "This folder's Git remote `origin` is missing or not on a server.",
      "Push the repository to a Git server first: Berth deploys from there.",
    );
  const branch = (await currentBranch()) ?? undefined;
  const spinner = spin("a host reads the repository …");
  try {
    const found = await client.call("inspectSource", { githubUrl: repository, branch, rootDir }, { signal });
    spinner.stop();
    for (const note of found.notes) say(dim(safe(note)));
    if (found.problem !== null) say(`${bold("It would not work as is:")} ${safe(found.problem)}`);
    if (found.language !== null)
      say(
        `Detected ${safe([found.language, found.languageVersion, found.framework].filter(Boolean).join(" "))}.`,
      );
    if (found.variables.length > 0)
      say(`It names these variables: ${found.variables.map(safe).join(", ")} (berth env set, or here).`);
    for (const type of found.databases)
      say(`It seems to use ${type}: add {"name": "…", "type": "${type}"} to "databases" for one.`);
    return {
      name: name ?? nameFrom(basename(repository, ".git")),
      source: {
        repository,
        ...(branch !== undefined && branch !== found.defaultBranch && { branch }),
        ...(rootDir !== undefined && { rootDir }),
      },
      // Commands are detected at each build, so that the file need not follow the repository.
      settings: { port: found.port ?? 3000 },
    };
  } finally {
    spinner.stop();
  }
}

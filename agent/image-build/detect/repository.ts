import { ignoredBy } from "../ignored.ts";
import { parseToml, stringsIn, tableIn } from "./parse.ts";
import { textOf, type Repository, type Sources } from "./sources.ts";

/** Where an app names folders and files that it is installed with; of package.json, versions only: scripts name others, too. */
const outside: [file: string, sign: RegExp][] = [
  ["package.json", /"(?:file|link|portal):\.\.\//],
  ...["go.mod", "requirements.txt", "pyproject.toml", "Pipfile", "composer.json", "Gemfile"].map(
    (file): [string, RegExp] => [file, /(?:^|[\s"'=:@])\.\.\//m],
  ),
];

/** The repository, where an app below its root is not built without the rest of it. */
export function repositoryOf(app: Sources, root: Sources, folder: string): Repository | null {
  const uvMember = isUvMember(app, root, folder) ? projectName(app) : null;
  const isNamed = outside.some(([file, sign]) => sign.test(textOf(app, file)));
  return isNamed || uvMember !== null || isOfGoWork(app, root, folder) ? { root, folder, uvMember } : null;
}

/** A module with a vendor folder has all that it needs, which Go does not read in a workspace. */
const isOfGoWork = (app: Sources, root: Sources, folder: string): boolean =>
  app.files.has("go.mod") &&
  !app.files.has("vendor/") &&
  textOf(root, "go.work")
    .split("\n")
    .some(
      (line) =>
        line
          .replace(/^\s*use\s/, "")
          .trim()
          .replace(/^\.\//, "")
          .replace(/\/$/, "") === folder,
    );

function isUvMember(app: Sources, root: Sources, folder: string): boolean {
  if (app.files.has("uv.lock") || !root.files.has("uv.lock")) return false;
  const workspace = tableIn(parseToml(textOf(root, "pyproject.toml")), "tool", "uv", "workspace");
  // The patterns mean the same.
  const patterns = [
    ...stringsIn(workspace?.["members"]),
    ...stringsIn(workspace?.["exclude"]).map((pattern) => `!${pattern}`),
  ];
  return ignoredBy(patterns.join("\n"))(folder, () => false);
}

function projectName(app: Sources): string | null {
  const name = tableIn(parseToml(textOf(app, "pyproject.toml")), "project")?.["name"];
  return typeof name === "string" && /^\w[\w.-]*$/.test(name) ? name : null;
}

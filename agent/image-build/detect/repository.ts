import { ignoredBy } from "../ignored.ts";
import { parseToml, stringsIn, tableIn } from "./parse.ts";
import { textOf, type Repository, type Sources } from "./sources.ts";

/** Where an app names folders and files that it is installed with; of package.json, versions only: scripts name others, too. */
const outside: [file: string, sign: RegExp][] = [
  ["package.json", /"(?:file|link|portal):\.\.\//],
  ...[
    "go.mod",
    "requirements.txt",
    "pyproject.toml",
    "Pipfile",
    "composer.json",
    "Gemfile",
    "Cargo.toml",
    "mix.exs",
  ].map((file): [string, RegExp] => [file, /(?:^|[\s"'=:@])\.\.\//m]),
];

/** The repository, where an app below its root is not built without the rest of it. */
export function repositoryOf(app: Sources, root: Sources, folder: string): Repository | null {
  const uvMember = isUvMember(app, root, folder) ? projectName(app) : null;
  const isNamed =
    outside.some(([file, sign]) => sign.test(textOf(app, file))) || isOfDotnet(app, root, folder);
  const isMember =
    uvMember !== null ||
    isOfGoWork(app, root, folder) ||
    isJavaModule(app, root, folder) ||
    isOfCargo(app, root);
  return isNamed || isMember ? { root, folder, uvMember } : null;
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

const ofAllProjects = /(?:^|\/)(?:Directory\.(?:Build|Packages)\.(?:props|targets)|nuget\.config)$/i;

/** A project that refers to one of another folder, or below a folder with a file that is part of all projects in it. */
const isOfDotnet = ({ files, texts }: Sources, root: Sources, folder: string): boolean =>
  [...texts].some(([file, text]) => /^[^/]+\.(?:cs|fs|vb)proj$/.test(file) && /"\.\.[\\/]/.test(text)) ||
  ([...files].some((file) => /^[^/]+\.(?:(?:cs|fs|vb)proj|slnx?)$/.test(file)) &&
    [...root.files].some(
      (file) => ofAllProjects.test(file) && folder.startsWith(file.replace(/[^/]*$/, "")),
    ));

/** A workspace of Cargo's takes in the packages below it, and has their lock file. */
const isOfCargo = (app: Sources, root: Sources): boolean =>
  app.files.has("Cargo.toml") &&
  !/^\[workspace\b/m.test(textOf(app, "Cargo.toml")) &&
  /^\[workspace\b/m.test(textOf(root, "Cargo.toml"));

/** A module that the root of the repository lists, as Maven or as Gradle does. */
function isJavaModule(app: Sources, root: Sources, folder: string): boolean {
  const module = folder.replaceAll(/[.+]/g, "\\$&");
  if (app.files.has("pom.xml"))
    return new RegExp(`<module>\\s*(?:\\./)?${module}/?\\s*</module>`).test(textOf(root, "pom.xml"));
  const settings = textOf(root, "settings.gradle") + textOf(root, "settings.gradle.kts");
  return (
    /\binclude\b/.test(settings) && new RegExp(`["']:?${module.replaceAll("/", "[:/]")}["']`).test(settings)
  );
}

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

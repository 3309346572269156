import { JobError } from "../../job.ts";
import { appsBelow, conda, notByItself } from "./not-found.ts";
import { newestMinor } from "./newest-minor.ts";
import { stringsIn, tableIn } from "./parse.ts";
import { pyprojectOf } from "./pyproject.ts";
import { dependsOn, systemPackages } from "./python-packages.ts";
import { entries, manageOf, startOf } from "./python-start.ts";
import { requirementsFile, requirementsFiles, requirementsOf } from "./requirements.ts";
import {
  present,
  procfileWeb,
  servedFolder,
  textOf,
  toolVersion,
  type Overrides,
  type Place,
  type Sources,
  type SystemPackages,
} from "./sources.ts";

export type PythonInstaller = "uv" | "poetry" | "pip" | "pipenv" | "pyproject" | "setup";
export type PythonPlan = Place & {
  kind: "python";
  /** Such as 3.12, or 3.12.4 where uv takes no other; null when any will do. */
  version: string | null;
  installer: PythonInstaller | null;
  /** Its name, where a workspace of uv's at the root of the repository installs it. */
  uvMember: string | null;
  manifests: string[];
  needsSource: boolean;
  /** The repository is a package, which is installed as well. */
  isPackage: boolean;
  /** Its build says what it depends on, not pyproject.toml. */
  isDynamic: boolean;
  sourceFolder: boolean;
  packages: SystemPackages;
  buildCommand: string | null;
  /** null: the build makes a folder of files, which is served. */
  startCommand: string | null;
  output: string;
  singlePage?: boolean;
};

const manifests: Record<PythonInstaller, string[]> = {
  uv: ["pyproject.toml", "uv.lock"],
  poetry: ["pyproject.toml", "poetry.lock"],
  pip: requirementsFiles,
  pipenv: ["Pipfile", "Pipfile.lock"],
  pyproject: ["pyproject.toml"],
  setup: [],
};
const signs = [...Object.values(manifests).flat(), "manage.py"];
/** Not the newest: packages have no wheels for that one at first, and take long to compile. */
const defaultPython = "3.13";

export function detectPython(sources: Sources, overrides: Overrides): PythonPlan | null {
  const { files } = sources;
  const alone = !files.has("package.json") && !files.has("index.html");
  if (present(sources, alone ? [...signs, "setup.py", ...entries] : signs).length === 0) return null;
  const isServed = servedFolder(overrides) !== null;
  const given = overrides.startCommand ?? (isServed ? null : procfileWeb(sources));
  return planPython(sources, overrides, given ?? (isServed ? null : startOf(sources)));
}

export function planPython(sources: Sources, overrides: Overrides, startCommand: string | null): PythonPlan {
  const { files } = sources;
  const mkdocs = startCommand === null && files.has("mkdocs.yml");
  if (startCommand === null && !mkdocs && servedFolder(overrides) === null) throw startsNothing(sources);
  const { folder: within = null, root = sources, uvMember = null } = sources.repository ?? {};
  const installer = uvMember === null ? installerOf(sources) : "uv";
  const ownCommand = overrides.installCommand ?? overrides.buildCommand;
  const other = installer === null && ownCommand === null ? notByItself(sources, [conda]) : null;
  if (other !== null) throw other;
  const isDynamic = installer === "pyproject" && hasDynamicDependencies(sources);
  const requirements = installer === "pip" ? requirementsOf(sources).files : null;
  return {
    kind: "python",
    version: versionOf(sources, installer),
    installer,
    within,
    uvMember,
    manifests:
      requirements ??
      (installer === null ? [] : present(uvMember === null ? sources : root, manifests[installer])),
    needsSource:
      uvMember === null &&
      (within !== null ||
        installer === "setup" ||
        (installer === "pip" ? requirements === null : hasOwn(sources))),
    isDynamic,
    isPackage:
      isDynamic ||
      uvMember !== null ||
      ((installer === "uv" || installer === "pyproject") &&
        tableIn(pyprojectOf(sources), "build-system") !== null),
    sourceFolder: files.has("src/"),
    packages: systemPackages(sources),
    buildCommand: overrides.buildCommand ?? (mkdocs ? "mkdocs build" : collectStatic(sources)),
    startCommand,
    output: servedFolder(overrides) ?? "site",
  };
}

function startsNothing({ files }: Sources): JobError {
  const apps = appsBelow([...files]);
  const below = apps === null ? "" : `, or set rootDir to the folder of the app (${apps})`;
  return new JobError(
    `Found a Python repository, but not what starts it: no Procfile, manage.py, main.py or app.py, and no mkdocs.yml. Add one, or set startCommand${below}.`,
  );
}

function installerOf(sources: Sources): PythonInstaller | null {
  const pyproject = pyprojectOf(sources);
  if (sources.files.has("uv.lock")) return "uv";
  if (sources.files.has("poetry.lock")) return "poetry";
  if (requirementsFile(sources) !== undefined) return "pip";
  if (sources.files.has("Pipfile")) return "pipenv";
  const poetry = tableIn(pyproject, "tool", "poetry");
  // Poetry builds no package for pip of what is none.
  if (poetry?.["package-mode"] === false) return "poetry";
  if (tableIn(pyproject, "project") !== null) return "pyproject";
  if (poetry !== null) return "poetry";
  return sources.files.has("setup.py") ? "setup" : null;
}

function versionOf(sources: Sources, installer: PythonInstaller | null): string | null {
  const text =
    textOf(sources, ".python-version") ||
    textOf(sources.repository?.root ?? sources, ".python-version") ||
    textOf(sources, "runtime.txt") ||
    toolVersion(sources, "python");
  const demanded = installer === "uv" ? /^\s*(3\.\d{1,2}\.\d{1,2})\s*$/.exec(text)?.[1] : undefined;
  const named = /^\s*(?:python-)?(3\.\d{1,2})(?:\.|\s|$)/.exec(text)?.[1];
  const pipfile = /^python_version\s*=\s*["'](3\.\d{1,2})["']/m.exec(textOf(sources, "Pipfile"))?.[1];
  const pyproject = pyprojectOf(sources);
  const asked =
    tableIn(pyproject, "project")?.["requires-python"] ??
    tableIn(pyproject, "tool", "poetry", "dependencies")?.["python"];
  const range = typeof asked === "string" && asked.length <= 100 ? asked : undefined;
  const least = /(?:>=|\^|~=?)[ \t]*3\.(\d{1,2})/.exec(range ?? "")?.[1];
  return (
    demanded ??
    named ??
    pipfile ??
    (range === undefined ? null : newestMinor(range, [3])) ??
    (Number(least) > Number(defaultPython.slice(2)) ? `3.${least}` : null)
  );
}

const hasDynamicDependencies = (sources: Sources): boolean =>
  stringsIn(tableIn(pyprojectOf(sources), "project")?.["dynamic"]).includes("dependencies");

/** Dependencies that are folders of the repository. */
const hasOwn = (sources: Sources): boolean =>
  ["pyproject.toml", "Pipfile"].some((file) =>
    /\b(?:path|workspace|file)[ \t]*=[ \t]*(?:["']|true)/.test(textOf(sources, file)),
  );

function collectStatic(sources: Sources): string | null {
  const manage = manageOf(sources);
  return manage !== undefined && dependsOn(sources, "whitenoise")
    ? `python ${manage} collectstatic --noinput`
    : null;
}

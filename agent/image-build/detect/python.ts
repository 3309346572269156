import { JobError } from "../../job.ts";
import { appsBelow } from "./not-found.ts";
import { newestMinor } from "./newest-minor.ts";
import { tableIn } from "./parse.ts";
import { pyprojectOf } from "./pyproject.ts";
import { manifestText, pythonManifests, requirementsOf } from "./requirements.ts";
import {
  gitPackages,
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

export type PythonInstaller = "uv" | "poetry" | "pip" | "pipenv" | "pyproject";
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
  pip: ["requirements.txt"],
  pipenv: ["Pipfile", "Pipfile.lock"],
  pyproject: ["pyproject.toml"],
};
const signs = [...Object.values(manifests).flat(), "manage.py"];
const entries = ["main.py", "app.py", "server.py", "start.py", "bot.py", "hello.py"];
/** Not the newest: packages have no wheels for that one at first, and take long to compile. */
export const defaultPython = "3.13";

export function detectPython(sources: Sources, overrides: Overrides): PythonPlan | null {
  const { files } = sources;
  const alone = !files.has("package.json") && !files.has("index.html");
  if (present(sources, alone ? [...signs, ...entries] : signs).length === 0) return null;
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
      (within !== null || (installer === "pip" ? requirements === null : hasOwn(sources))),
    isPackage:
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
  if (sources.files.has("requirements.txt")) return "pip";
  if (sources.files.has("Pipfile")) return "pipenv";
  if (tableIn(pyproject, "project") !== null) return "pyproject";
  return tableIn(pyproject, "tool", "poetry") === null ? null : "poetry";
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

/** Dependencies that are folders of the repository. */
const hasOwn = (sources: Sources): boolean =>
  ["pyproject.toml", "Pipfile"].some((file) =>
    /\b(?:path|workspace|file)[ \t]*=[ \t]*(?:["']|true)/.test(textOf(sources, file)),
  );

const isInManifest = (sources: Sources, sign: RegExp): boolean =>
  pythonManifests.some((file) => sign.test(manifestText(sources, file)));

/** Whether the manifests name a package as a direct dependency. */
function dependsOn(sources: Sources, name: string): boolean {
  const written = new RegExp(`(?:^|["'])[ \\t]*["']?${name.replace("-", "[-_]")}(?![\\w-])`, "im");
  return isInManifest(sources, written);
}

/** `name @ git+https://…`, and a table's `git = "…"`. */
const takesFromGit = (sources: Sources): boolean =>
  isInManifest(sources, /^[^#\n]*\bgit\+\w+:|^[ \t]*git[ \t]*=|[{,][ \t]*git[ \t]*=/m);

/** What packages are compiled with, are linked to, or call. */
const systemPackagesOf: (SystemPackages & { name: string })[] = [
  { name: "psycopg2", build: ["gcc", "libc6-dev", "libpq-dev"], run: ["libpq5"] },
  {
    name: "mysqlclient",
    build: ["gcc", "libc6-dev", "pkg-config", "default-libmysqlclient-dev"],
    run: ["libmariadb3"],
  },
  ...[
    { name: "opencv-python", libraries: ["libgl1", "libglib2.0-0"] },
    { name: "weasyprint", libraries: ["libpango-1.0-0", "libpangoft2-1.0-0", "libharfbuzz-subset0"] },
    { name: "python-magic", libraries: ["libmagic1"] },
    // Commands of a build, such as Django's, import the app.
  ].map(({ name, libraries }) => ({ name, build: libraries, run: libraries })),
  { name: "pdf2image", build: [], run: ["poppler-utils"] },
  { name: "pydub", build: [], run: ["ffmpeg"] },
  { name: "pytesseract", build: [], run: ["tesseract-ocr"] },
];

function systemPackages(sources: Sources): SystemPackages {
  const found = systemPackagesOf.filter(({ name }) => dependsOn(sources, name));
  return {
    build: [
      ...new Set([...found.flatMap(({ build }) => build), ...(takesFromGit(sources) ? gitPackages : [])]),
    ],
    run: found.flatMap(({ run }) => run),
  };
}

/** Django's, at the root or in the folder that `startproject` makes. */
const manageOf = ({ files }: Sources): string | undefined =>
  files.has("manage.py") ? "manage.py" : [...files].find((file) => /^\w+\/manage\.py$/.test(file));

function collectStatic(sources: Sources): string | null {
  const manage = manageOf(sources);
  return manage !== undefined && dependsOn(sources, "whitenoise")
    ? `python ${manage} collectstatic --noinput`
    : null;
}

const asgiApp = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?(?:FastAPI|Starlette)\(/m;
const madeApp = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?create_app\(/m;

/** These listen for their own machine only, unless they are told. */
const starters: [dependency: string, command: string][] = [
  ["streamlit", "streamlit run --server.address 0.0.0.0 --server.port $PORT --server.headless true"],
  ["chainlit", "chainlit run --host 0.0.0.0 --port $PORT --headless"],
  ["gradio", "env GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=$PORT python"],
  ["dash", "env HOST=0.0.0.0 python"],
];

function startOf(sources: Sources): string | null {
  const manage = manageOf(sources);
  if (manage !== undefined) return startDjango(sources, manage);
  const asgi =
    findApp(sources, asgiApp) ?? (dependsOn(sources, "fastapi") ? findApp(sources, madeApp) : null);
  if (asgi !== null) return startAsgi(sources, asgi);
  const wsgi = findApp(sources, /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?Flask\(/m);
  if (wsgi !== null) return startFlask(sources, wsgi, false);
  const factory = dependsOn(sources, "flask") ? findApp(sources, /^def (create_app)\(/m) : null;
  if (factory !== null) return startFlask(sources, factory, true);
  const entry = present(sources, ["streamlit_app.py", ...entries])[0];
  if (entry === undefined) return null;
  return (starters.find(([name]) => dependsOn(sources, name))?.[1] ?? "python") + ` ${entry}`;
}

function startDjango(sources: Sources, manage: string): string {
  const folder = manage.replace(/manage\.py$/, "");
  const isHere = (project: string | undefined): project is string =>
    project !== undefined && sources.files.has(`${folder}${project}/wsgi.py`);
  const settings = /DJANGO_SETTINGS_MODULE["']\s*,\s*["'](\w+)/.exec(textOf(sources, manage))?.[1];
  const others = [...sources.files].map((file) => /(?:^|\/)(\w+)\/wsgi\.py$/.exec(file)?.[1]);
  const project = [settings, ...others].find(isHere);
  const start = project === undefined ? undefined : serverOf(sources, folder, project);
  if (start === undefined) return `python ${manage} runserver --noreload 0.0.0.0:$PORT`;
  return folder === "" ? start : `cd ${folder.slice(0, -1)} && ${start}`;
}

/** The server that Django's app brings; for WebSockets, which Channels are for, one of ASGI. */
function serverOf(sources: Sources, folder: string, project: string): string | undefined {
  const wsgi: [isThere: boolean, command: string][] = [
    [dependsOn(sources, "gunicorn"), `gunicorn ${project}.wsgi --bind 0.0.0.0:$PORT`],
    [dependsOn(sources, "waitress"), `waitress-serve --port=$PORT ${project}.wsgi:application`],
  ];
  const hasAsgi = sources.files.has(`${folder}${project}/asgi.py`);
  const hasDaphne = dependsOn(sources, "daphne") || isInManifest(sources, /\bchannels\[daphne\]/i);
  const asgi: typeof wsgi = [
    [hasAsgi && hasDaphne, `daphne --bind 0.0.0.0 --port $PORT ${project}.asgi:application`],
    [
      hasAsgi && dependsOn(sources, "uvicorn"),
      `uvicorn ${project}.asgi:application --host 0.0.0.0 --port $PORT`,
    ],
  ];
  const servers = dependsOn(sources, "channels") ? [...asgi, ...wsgi] : [...wsgi, ...asgi];
  return servers.find(([isThere]) => isThere)?.[1];
}

/** FastAPI's own extras bring Uvicorn along. */
function startAsgi(sources: Sources, app: string): string {
  const brought = /fastapi(?:-cli)?\[(?:standard|all)/i;
  if (!dependsOn(sources, "uvicorn") && !isInManifest(sources, brought))
    throw new JobError(
      `Found the app ${app}, but no server for it: add uvicorn to the dependencies, or set startCommand.`,
    );
  return `uvicorn ${app} --host 0.0.0.0 --port $PORT`;
}

function startFlask(sources: Sources, app: string, isFactory: boolean): string {
  if (dependsOn(sources, "gunicorn"))
    return `gunicorn ${isFactory ? `'${app}()'` : app} --bind 0.0.0.0:$PORT`;
  if (dependsOn(sources, "waitress"))
    return `waitress-serve --port=$PORT ${isFactory ? "--call " : ""}${app}`;
  return `flask --app ${app} run --host 0.0.0.0 --port $PORT`;
}

const pythonModule = /^(?:src\/)?(?:\w+\/)?\w+\.py$/;

/** `module:name` of what a pattern finds, in the usual files first. */
function findApp(sources: Sources, pattern: RegExp): string | null {
  const usual = ["main.py", "app.py", "app/main.py", "wsgi.py", "asgi.py", "server.py"];
  const modules = [...sources.texts.keys()].filter((file) => pythonModule.test(file)).sort();
  for (const file of [...present(sources, usual), ...modules]) {
    const name = pattern.exec(textOf(sources, file))?.[1];
    if (name !== undefined) return `${moduleOf(file)}:${name}`;
  }
  return null;
}

const moduleOf = (file: string): string =>
  file
    .replace(/^src\//, "")
    .replace(/(?:\/__init__)?\.py$/, "")
    .replaceAll("/", ".");

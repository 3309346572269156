import { JobError } from "../../job.ts";
import { dependsOn, isInManifest } from "./python-packages.ts";
import { present, textOf, type Sources } from "./sources.ts";

export const entries = ["main.py", "app.py", "server.py", "start.py", "bot.py", "hello.py"];

/** Django's, at the root or in the folder that `startproject` makes; Flask's apps may have one, too. */
export const manageOf = (sources: Sources): string | undefined =>
  [
    ...present(sources, ["manage.py"]),
    ...[...sources.files].filter((file) => /^\w+\/manage\.py$/.test(file)),
  ].find((file) => /^$|django/i.test(textOf(sources, file)));

const asgiApp = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?(?:FastAPI|Starlette|Litestar|Quart)\(/m;
const madeApp = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?create_app\(/m;

/** These listen for their own machine only, unless they are told. */
const starters: [dependency: string, command: string][] = [
  ["streamlit", "streamlit run --server.address 0.0.0.0 --server.port $PORT --server.headless true"],
  ["chainlit", "chainlit run --host 0.0.0.0 --port $PORT --headless"],
  ["gradio", "env GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=$PORT python"],
  ["dash", "env HOST=0.0.0.0 python"],
];

/** What starts an app that does not say so itself. @throws JobError where no server is there for it */
export function startOf(sources: Sources): string | null {
  const manage = manageOf(sources);
  if (manage !== undefined) return startDjango(sources, manage);
  const asgi =
    findApp(sources, asgiApp) ?? (dependsOn(sources, "fastapi") ? findMade(sources, /\.py$/) : null);
  if (asgi !== null) return startAsgi(sources, asgi);
  const wsgi = findApp(sources, /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?Flask\(/m);
  if (wsgi !== null) return startFlask(sources, wsgi, false);
  const sanic = findApp(sources, /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?Sanic\(/m);
  if (sanic !== null) return `sanic ${sanic} --host 0.0.0.0 --port $PORT`;
  const factory = dependsOn(sources, "flask") ? startFactory(sources) : null;
  if (factory !== null) return factory;
  const streamlit = dependsOn(sources, "streamlit") ? ["Home.py", "Hello.py", ...onlyStreamlit(sources)] : [];
  const entry = present(sources, ["streamlit_app.py", ...entries, ...streamlit])[0];
  if (entry === undefined) return null;
  return (starters.find(([name]) => dependsOn(sources, name))?.[1] ?? "python") + ` ${entry}`;
}

const usual = ["main.py", "app.py", "app/main.py", "wsgi.py", "asgi.py", "server.py"];
const usualOfMade = /^(?:(?:app\/)?main|app|wsgi|asgi|server|run|application|manage)\.py$/;
/** Its first parameter has no default. */
const needyFactory = /^def (create_app)\(\s*\w+\s*(?::(?:[^=,)[]|\[[^\]=]{0,100}\]){0,100})?[,)]/m;

/** By itself where it needs nothing, else by the module that calls it; others that do may be scripts, such as one that fills a database. */
function startFactory(sources: Sources): string | null {
  const bare = findApp(sources, /^def (create_app)\(\s*\)/m);
  if (bare !== null) return startFlask(sources, bare, true);
  const isNeedy = findApp(sources, needyFactory) !== null;
  const made = findMade(sources, usualOfMade) ?? (isNeedy ? findMade(sources, /\.py$/) : null);
  if (made !== null) return startFlask(sources, made, false);
  const factory = findApp(sources, /^def (create_app)\(/m);
  return factory && startFlask(sources, factory, true);
}

/** The app that a module makes by its function, where loading the module deletes no tables and starts no server of its own. */
function findMade({ files, texts }: Sources, name: RegExp): string | null {
  const modules = [...texts].filter(
    ([file, text]) => name.test(file) && !/\bdrop_all\(|^\w[\w.]*\.run\(/m.test(text),
  );
  return findApp({ files, texts: new Map(modules) }, madeApp);
}

/** The script at the root that makes a page, where there is one only. */
function onlyStreamlit({ texts }: Sources): string[] {
  const scripts = [...texts].filter(
    ([file, text]) => /^[\w-]+\.py$/.test(file) && /^(?:import|from) streamlit\b/m.test(text),
  );
  return scripts.length === 1 ? scripts.map(([file]) => file) : [];
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

/** The extras of FastAPI and Litestar bring Uvicorn along, and Quart Hypercorn. */
function startAsgi(sources: Sources, app: string): string {
  const brought = /fastapi(?:-cli)?\[(?:standard|all)|litestar\[standard/i;
  if (dependsOn(sources, "uvicorn") || isInManifest(sources, brought))
    return `uvicorn ${app} --host 0.0.0.0 --port $PORT`;
  if (dependsOn(sources, "hypercorn") || dependsOn(sources, "quart"))
    return `hypercorn ${app} --bind 0.0.0.0:$PORT`;
  if (dependsOn(sources, "daphne")) return `daphne --bind 0.0.0.0 --port $PORT ${app}`;
  if (dependsOn(sources, "granian")) return `granian --interface asgi --host 0.0.0.0 --port $PORT ${app}`;
  throw new JobError(
    `Found the app ${app}, but no server for it: add uvicorn to the dependencies, or set startCommand.`,
  );
}

function startFlask(sources: Sources, app: string, isFactory: boolean): string {
  if (dependsOn(sources, "gunicorn"))
    return `gunicorn ${isFactory ? `'${app}()'` : app} --bind 0.0.0.0:$PORT`;
  if (dependsOn(sources, "waitress"))
    return `waitress-serve --port=$PORT ${isFactory ? "--call " : ""}${app}`;
  return `flask --app ${app} run --host 0.0.0.0 --port $PORT`;
}

const pythonModule =
  /^(?!(?:src\/)?tests?\/|(?:.*\/)?(?:conftest|test_\w+)\.py$)(?:src\/)?(?:\w+\/)?\w+\.py$/;
const isExample = (file: string): number => Number(/^(?:src\/)?(?:examples?|docs?)\//.test(file));

/** `module:name` of what a pattern finds, in the usual files first, and in no tests. */
function findApp(sources: Sources, pattern: RegExp): string | null {
  const modules = [...sources.texts.keys()]
    .filter((file) => pythonModule.test(file))
    .sort()
    .sort((one, other) => isExample(one) - isExample(other));
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

import { jsonIn } from "../../../protocol/json.ts";
import { JobError } from "../../job.ts";
import { dependsOn, scriptOf, startScript, type PackageJson } from "./package-json.ts";
import {
  placeOf,
  present,
  procfileWeb,
  servedFolder,
  textOf,
  toolVersion,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

export type DenoPlan = Place & {
  kind: "deno";
  /** Such as 2.5.6; null when any will do. */
  version: string | null;
  manifests: string[];
  /** The install reads more than the manifests: the whole source is copied before it. */
  needsSource: boolean;
  locked: boolean;
  /** The manifests name dependencies. */
  installs: boolean;
  /** The file that is started, whose dependencies are downloaded when the app is built. */
  entry: string | null;
  buildCommand: string | null;
  /** null: the build makes a folder of files, which is served. */
  startCommand: string | null;
  output: string;
  /** It is there, as the owner says. */
  isOutputGiven: boolean;
  /** null: where the build leaves no other page. */
  singlePage: boolean | null;
};

const configurations = ["deno.json", "deno.jsonc"];
const signs = [...configurations, "deno.lock"];
const entries = ["main", "server", "index", "app", "mod"].flatMap((name) =>
  ["", "src/"].flatMap((folder) => ["ts", "tsx", "js"].map((ending) => `${folder}${name}.${ending}`)),
);
/** Where Vite's templates have what the page loads. */
const browserEntry = /^src\/(?!server)/;

type Configuration = { tasks?: unknown; imports?: unknown; workspace?: unknown; importMap?: unknown };

/** A "start" script that runs Deno, where no package brings it. */
export const startsDeno = (sources: Sources, manifest: PackageJson): boolean =>
  present(sources, signs).length > 0 &&
  !dependsOn(manifest, "deno") &&
  /^[ \t]*(?:\w+=\S*[ \t]+)*deno[ \t]/.test(startScript(manifest) ?? "");

export function detectDeno(
  sources: Sources,
  overrides: Overrides,
  manifest: PackageJson | null,
): DenoPlan | null {
  if (present(sources, signs).length === 0) return null;
  const configuration = readConfiguration(sources);
  const tasks = (name: string) => taskOf(configuration, manifest, name);
  const isOfLume = importsLume(configuration);
  const hasVite = manifest !== null && dependsOn(manifest, "vite");
  const isOfVite = hasVite || ["dev", "build", "preview"].some((name) => /\bvite\b/.test(tasks(name) ?? ""));
  const entry = isOfLume
    ? undefined
    : present(sources, entries).find((file) => !(isOfVite && browserEntry.test(file)));
  const start =
    ["start", "preview"].find((name) => isForProduction(commandOf(tasks, name))) ??
    ["serve"].find((name) => /\bfile[-_]server\b/.test(tasks(name) ?? "")) ??
    // What package.json builds with Vite is a site of files.
    (!hasVite && entry === undefined && /--host\b/.test(tasks("preview") ?? "") ? "preview" : undefined);
  const served = servedFolder(overrides);
  const given = served === null ? (overrides.startCommand ?? procfileWeb(sources)) : null;
  const startCommand = served === null ? (given ?? startOf(sources, start, entry)) : null;
  const isSiteOfVite = isOfVite && !hasVite && sources.files.has("index.html") && tasks("build") !== null;
  const made = served ?? (isOfLume ? "_site" : isSiteOfVite ? "dist" : null);
  if (startCommand === null && made === null)
    throw new JobError(
      'Found a Deno repository, but not what starts it: no task "start", main.ts or server.ts. Add one, or set startCommand; or set outputDir to the folder that its build writes, where that is a site of files.',
    );
  const command = startCommand === null ? "" : (given ?? tasks(start ?? "") ?? startCommand);
  const build = ["build", ...(isOfLume ? ["lume"] : [])].find((name) => tasks(name) !== null);
  const { within } = placeOf(sources);
  return {
    kind: "deno",
    within,
    version: versionOf(sources),
    manifests: present(sources, [...signs, "package.json", ".npmrc", importMapOf(configuration)]),
    needsSource: within !== null || configuration.workspace !== undefined,
    locked: sources.files.has("deno.lock"),
    installs:
      manifest !== null || configuration.imports !== undefined || configuration.workspace !== undefined,
    entry:
      /(?:^|[\s/])((?:[\w-]+\/){0,5}[\w-]+\.(?:ts|tsx|js|mjs))(?:\s|$)/.exec(command.slice(0, 2000))?.[1] ??
      null,
    buildCommand: overrides.buildCommand ?? (build === undefined ? null : `deno task ${build}`),
    startCommand,
    output: made ?? "",
    isOutputGiven: served !== null,
    singlePage: isSiteOfVite && served === null ? null : false,
  };
}

const importMapOf = ({ importMap }: Configuration): string =>
  typeof importMap === "string" ? importMap.replace(/^\.\//, "") : "import_map.json";

function versionOf(sources: Sources): string | null {
  const text = textOf(sources, ".deno-version") || textOf(sources, ".dvmrc") || toolVersion(sources, "deno");
  return /^v?(\d+\.\d+\.\d+)\b/.exec(text.trimStart())?.[1] ?? null;
}

/** By it, servers listen there whatever address their code names. */
const listens = "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT";

function startOf(sources: Sources, task: string | undefined, entry: string | undefined): string | null {
  if (task !== undefined) return `${listens} deno task ${task}`;
  if (entry === undefined) return null;
  const exportsServer = /^export default\b/m.test(textOf(sources, entry));
  return `${listens} deno ${exportsServer ? "serve" : "run"} --allow-all ${entry}`;
}

function readConfiguration(sources: Sources): Configuration {
  const [file] = present(sources, configurations);
  if (file === undefined) return {};
  const value = jsonIn(withoutComments(textOf(sources, file)));
  if (value === undefined) throw new JobError(`${file} is not valid JSON: correct it and deploy again.`);
  return typeof value === "object" && value !== null ? value : {};
}

function taskOf({ tasks }: Configuration, manifest: PackageJson | null, name: string): string | null {
  const all = typeof tasks === "object" && tasks !== null ? (tasks as Record<string, unknown>) : {};
  const task = all[name];
  if (typeof task === "string") return task;
  if (typeof task === "object" && task !== null && "command" in task && typeof task.command === "string")
    return task.command;
  return manifest && scriptOf(manifest, name);
}

/** It makes a site of files; its own server is for development. */
const importsLume = ({ imports }: Configuration): boolean =>
  typeof imports === "object" && imports !== null && "lume/" in imports;

/** What a task runs, also by the name of another one. */
function commandOf(tasks: (name: string) => string | null, name: string): string | null {
  const of = (one: string) => tasks(one)?.slice(0, 2000) ?? null;
  const other = /^[ \t]*deno task ([\w:.-]+)[ \t]*$/.exec(of(name) ?? "")?.[1];
  return of(other ?? name);
}

/** Vite's preview answers to no name but localhost. */
const isForProduction = (task: string | null): boolean =>
  task !== null &&
  !/--watch|--hmr|\bdev\.ts\b|^[ \t]*vite[ \t]*$|\bvite[ \t]+preview\b|\blume[ \t]+(?:.*[ \t])?(?:-s|--serve)\b/.test(
    task,
  );

/** As JSON, where comments and a comma after the last item may be. */
function withoutComments(text: string): string {
  const kept = text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//g, (found) =>
    found.startsWith('"') ? found : " ",
  );
  return kept.replace(/"(?:[^"\\\n]|\\.)*"|,(?=[ \t\r\n]{0,1000}[\]}])/g, (found) =>
    found.startsWith('"') ? found : "",
  );
}

import { JobError } from "../../job.ts";
import { detectDeno, startsDeno } from "./deno.ts";
import { detectDotnet } from "./dotnet.ts";
import { detectElixir } from "./elixir.ts";
import { demandNoWorker, isServer, withUsedAdapters } from "./framework-server.ts";
import { detectGo } from "./go.ts";
import { detectJava } from "./java.ts";
import { detectNode, entryCommand, nodeBuild, type NodeBuild } from "./node.ts";
import { withNx } from "./nx.ts";
import { notFound } from "./not-found.ts";
import { programOf } from "./package-manager.ts";
import { readPackageJson, scriptOf, withoutSecondBuild, type PackageJson } from "./package-json.ts";
import { asOwnerSays } from "./owner.ts";
import type { Backend, BackendPlan, Plan } from "./plan.ts";
import { detectPhp } from "./php.ts";
import { detectPython, planPython } from "./python.ts";
import { detectRuby } from "./ruby.ts";
import { demandNoBrowserApp, detectRust } from "./rust.ts";
import { notesOf, procfileWeb, servedFolder, type Overrides, type Sources } from "./sources.ts";
import { detectScript } from "./script.ts";
import { detectSite, hasFramework, isStaticExport, planOfFiles, withFilesRules } from "./static.ts";
import { readStaticfile } from "./static-rules.ts";
import { amongApps, startsOneApp } from "./workspace-apps.ts";

/** What the repository is and how it is built and started. @throws JobError when it cannot be told */
export function detect(sources: Sources, overrides: Overrides): Plan {
  try {
    const plan = planOf(sources, withNx(sources, overrides));
    const served = plan.kind === "static" || plan.kind === "site" ? withFilesRules(plan, sources) : plan;
    return asOwnerSays(served, overrides);
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    throw new JobError([error.message, ...notesOf(sources)].join(" "));
  }
}

function planOf(sources: Sources, overrides: Overrides): Plan {
  const whole = readPackageJson(sources);
  const used = whole && withUsedAdapters(sources, whole);
  const manifest = used && overrides.buildCommand === null ? withoutSecondBuild(used) : used;
  const folder = servedFolder(overrides);
  if (folder !== null) return planOfServed(sources, manifest, overrides, folder);
  if (manifest !== null) demandNoWorker(sources, manifest, overrides);
  const isOfNode =
    manifest !== null &&
    isServer(manifest) &&
    !startsDeno(sources, manifest) &&
    namedBackend(sources, overrides) === undefined;
  if (isOfNode && !isStaticExport(sources, manifest))
    return startsOneApp(detectNode(sources, manifest, overrides), sources, manifest, overrides);
  demandNoBrowserApp(sources, overrides);
  const { plan: backend, failure } = detectBackend({ ...sources, workspace: null }, manifest, overrides);
  if (backend !== null) return backend;
  if (manifest !== null)
    try {
      return detectFrontend(sources, manifest, overrides);
    } catch (error) {
      if (!(error instanceof JobError) || failure === null || failure.message === error.message) throw error;
      throw new JobError(`${error.message} If package.json is there for tools only: ${failure.message}`);
    }
  if (failure !== null) throw failure;
  const { root } = readStaticfile(sources);
  if ((root !== null || sources.files.has("index.html")) && overrides.startCommand === null)
    return planOfFiles(sources, root, "root in Staticfile");
  const script = detectScript(sources, overrides);
  if (script === null) throw notFound(sources);
  return script.kind === "python" ? { ...script, assets: null } : script;
}

/** The owner names the folder that is served. @throws JobError where an app of that language makes none */
function planOfServed(
  sources: Sources,
  manifest: PackageJson | null,
  overrides: Overrides,
  folder: string,
): Plan {
  if (manifest !== null)
    return {
      kind: "site",
      ...nodeBuild(sources, manifest, overrides),
      outputs: [folder],
      isOutputGiven: true,
      singlePage: false,
    };
  const { plan: backend, failure } = detectBackend({ ...sources, workspace: null }, null, overrides);
  if (failure !== null) throw failure;
  if (backend?.kind === "python" || backend?.kind === "ruby" || backend?.kind === "deno") return backend;
  if (backend !== null)
    throw new JobError(
      `outputDir is set for a repository whose app is started, and produces no folder of files (${backend.kind}): remove outputDir, or add a Dockerfile.`,
    );
  if ([...sources.files].some((file) => /^[^/]+\.py$/.test(file)) && overrides.buildCommand !== null)
    return { ...planPython(sources, overrides, null), assets: null };
  return overrides.buildCommand === null
    ? planOfFiles(sources, folder, "outputDir")
    : {
        kind: "script",
        script: null,
        buildCommand: overrides.buildCommand,
        startCommand: null,
        output: folder,
      };
}

type DetectBackend = (sources: Sources, overrides: Overrides, manifest: PackageJson | null) => Backend | null;

const startedBy = (programs: string): RegExp =>
  new RegExp(String.raw`^(?:(?:exec|env|\w+=\S*|cd +\S+ *&&) +)*(?:[\w.-]+\/)*(?:${programs})(?= |$)`);
/** By programs that start an app in another language: what package.json starts there makes its assets, such as `webpack --watch`. */
const backends: [sign: RegExp, detectLanguage: DetectBackend][] = [
  [
    startedBy(
      String.raw`python(?:3(?:\.\d+)?)?|manage\.py|(?:uv|poetry|pipenv) run|gunicorn|uvicorn|hypercorn|daphne|waitress-serve|flask|streamlit`,
    ),
    detectPython,
  ],
  [startedBy("ruby|bundle|rails|rackup|puma"), detectRuby],
  [startedBy("php|heroku-php-(?:apache2|nginx)|serve-php"), detectPhp],
  [startedBy("java"), detectJava],
  [startedBy("dotnet"), detectDotnet],
  [startedBy("mix"), detectElixir],
];

/** What detects the language of the program that the owner's command starts. */
function namedBackend(sources: Sources, overrides: Overrides): DetectBackend | undefined {
  const given = overrides.startCommand ?? procfileWeb(sources) ?? "";
  return backends.find(([sign]) => sign.test(given))?.[1];
}

/**
 * An app of another language, whose package.json, if any, is there for its assets. Where nothing starts such an app, a
 * package.json goes before it: manifests of other languages may be there for tools only.
 */
function detectBackend(
  sources: Sources,
  manifest: PackageJson | null,
  overrides: Overrides,
): { plan: BackendPlan | null; failure: JobError | null } {
  let failure: JobError | null = null;
  const named = namedBackend(sources, overrides);
  for (const detectLanguage of new Set<DetectBackend>([
    ...(named === undefined ? [] : [named]),
    detectGo,
    detectPython,
    detectRuby,
    detectPhp,
    detectJava,
    detectDotnet,
    detectRust,
    detectElixir,
    detectDeno,
  ]))
    try {
      const plan = detectLanguage(sources, overrides, manifest);
      if (plan !== null) return { plan: withAssets(plan, sources, manifest), failure: null };
    } catch (error) {
      if (!(error instanceof JobError)) throw error;
      failure ??= error;
    }
  return { plan: null, failure };
}

const withAssets = (plan: Backend, sources: Sources, manifest: PackageJson | null): BackendPlan => ({
  ...plan,
  assets: manifest && assetsOf(plan, sources, manifest),
});

function assetsOf(plan: Backend, sources: Sources, manifest: PackageJson): NodeBuild | null {
  // Deno runs the scripts of package.json itself.
  if (plan.kind === "deno") return null;
  const build = nodeBuild(sources, manifest, { buildCommand: null, startCommand: null });
  const hasCss = plan.kind === "ruby" && scriptOf(manifest, "build:css") !== null;
  const commands = [build.buildCommand, hasCss ? `${programOf(build.packageManager)} run build:css` : null];
  const buildCommand = commands.filter((command) => command !== null).join(" && ");
  if (buildCommand !== "") return { ...build, buildCommand };
  return plan.kind === "ruby" && plan.packsByNode ? build : null;
}

function detectFrontend(sources: Sources, manifest: PackageJson, overrides: Overrides): Plan {
  const given = overrides.startCommand ?? procfileWeb(sources);
  const starts = given !== null || (!hasFramework(manifest) && entryCommand(sources, manifest) !== null);
  const site = starts ? null : detectSite(sources, manifest, overrides);
  // Its package.json is there for tools only.
  if (!starts && site === null && sources.files.has("index.html")) return { kind: "static" };
  return site === null
    ? detectNode(sources, manifest, overrides)
    : amongApps(site, sources, manifest, overrides);
}

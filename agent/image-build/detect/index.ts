import { JobError } from "../../job.ts";
import { frameworkServer } from "./framework-server.ts";
import { detectGo, type GoPlan } from "./go.ts";
import { detectNode, entryCommand, nodeBuild, type NodeBuild, type NodePlan } from "./node.ts";
import { withNx } from "./nx.ts";
import { notFound } from "./not-found.ts";
import { readPackageJson, startScript, type PackageJson } from "./package-json.ts";
import { detectPhp, type PhpPlan } from "./php.ts";
import { detectPython, type PythonPlan } from "./python.ts";
import { detectRuby, type RubyPlan } from "./ruby.ts";
import { notesOf, procfileWeb, type Overrides, type Sources } from "./sources.ts";
import { detectSite, hasFramework, isStaticExport, type SitePlan, type StaticPlan } from "./static.ts";

type Backend = GoPlan | PythonPlan | RubyPlan | PhpPlan;
/** Assets are made by a package.json's build script before the app of another language is. */
export type BackendPlan = Backend & { assets: NodeBuild | null };
export type Plan = NodePlan | SitePlan | StaticPlan | BackendPlan;

/** What the repository is and how it is built and started. @throws JobError when it cannot be told */
export function detect(sources: Sources, overrides: Overrides): Plan {
  try {
    return planOf(sources, withNx(sources, overrides));
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    throw new JobError([error.message, ...notesOf(sources)].join(" "));
  }
}

function planOf(sources: Sources, overrides: Overrides): Plan {
  const manifest = readPackageJson(sources);
  if (manifest !== null && isServer(manifest) && !isStaticExport(sources, manifest))
    return detectNode(sources, manifest, overrides);
  const backend = detectBackend({ ...sources, workspace: null }, manifest, overrides);
  if (backend !== null) return backend;
  if (manifest !== null) return detectFrontend(sources, manifest, overrides);
  if (sources.files.has("index.html")) return { kind: "static" };
  throw notFound(sources);
}

const isServer = (manifest: PackageJson): boolean =>
  startScript(manifest) !== null || frameworkServer(manifest) !== null;

/**
 * An app of another language, whose package.json, if any, is there for its assets. Where nothing starts such an app, a
 * package.json goes before it: manifests of other languages may be there for tools only.
 */
function detectBackend(
  sources: Sources,
  manifest: PackageJson | null,
  overrides: Overrides,
): BackendPlan | null {
  const failures: JobError[] = [];
  for (const detectLanguage of [detectGo, detectPython, detectRuby, detectPhp])
    try {
      const plan = detectLanguage(sources, overrides, manifest);
      if (plan !== null) return { ...plan, assets: assetsOf(sources, manifest) };
    } catch (error) {
      if (!(error instanceof JobError)) throw error;
      failures.push(error);
    }
  if (manifest === null && failures[0] !== undefined) throw failures[0];
  return null;
}

function assetsOf(sources: Sources, manifest: PackageJson | null): NodeBuild | null {
  const build = manifest && nodeBuild(sources, manifest, { buildCommand: null, startCommand: null });
  return build?.buildCommand == null ? null : build;
}

function detectFrontend(sources: Sources, manifest: PackageJson, overrides: Overrides): Plan {
  const given = overrides.startCommand ?? procfileWeb(sources);
  const starts = given !== null || (!hasFramework(manifest) && entryCommand(sources, manifest) !== null);
  const site = starts ? null : detectSite(sources, manifest, overrides);
  // Its package.json is there for tools only.
  if (!starts && site === null && sources.files.has("index.html")) return { kind: "static" };
  return site ?? detectNode(sources, manifest, overrides);
}

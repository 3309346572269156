import { JobError } from "../../job.ts";
import { frameworkServer, isServer, withUsedAdapters } from "./framework-server.ts";
import type { NodePlan } from "./node.ts";
import { named } from "./not-found.ts";
import { scriptOf, startScript, type PackageJson } from "./package-json.ts";
import { procfileWeb, type Overrides, type Sources } from "./sources.ts";
import type { Plan } from "./plan.ts";
import { hasFramework, isStaticExport, type SitePlan } from "./static.ts";
import { packagesIn } from "./workspace.ts";

/**
 * The site that the root of a workspace builds, with the apps that its owner may mean instead.
 * @throws JobError where it only has its packages built, and they are servers
 */
export function amongApps(
  site: SitePlan,
  sources: Sources,
  manifest: PackageJson,
  overrides: Overrides,
): SitePlan {
  if (!site.isWorkspace || site.folder !== null || hasFramework(manifest)) return site;
  const packages = packagesIn(sources);
  const apps = packages.filter((one) => isServer(one.manifest) || hasFramework(one.manifest));
  if (apps.length === 0) return site;
  const names = named(apps.map(({ folder }) => folder));
  const leavesNoPage =
    overrides.buildCommand === null &&
    onlyBuildsPackages(manifest) &&
    !site.outputs.some((folder) => sources.files.has(`${folder}/`)) &&
    packages.every((one) => makesNoPage(sources, one));
  if (leavesNoPage)
    throw new JobError(
      `Found a workspace whose root builds its apps and starts none: set rootDir to the one to deploy (${names}), or set startCommand.`,
    );
  const servers = apps.filter((one) => isServer(one.manifest) && makesNoPage(sources, one));
  return { ...site, apps: names, servers: servers.map(({ folder }) => folder) };
}

/** That a site of files, of which the root of a workspace has several apps, is no more than files. */
export function serverNotes(plan: Plan): string[] {
  if (plan.kind !== "site" || !plan.servers?.length) return [];
  return [
    `The workspace's pages are served, and no server of it is started: deploy ${named(plan.servers)} as a site of its own, with that folder as rootDir.`,
  ];
}

/** @throws JobError where the root starts several apps: they would all listen on the port of the site */
export function startsOneApp(
  plan: NodePlan,
  sources: Sources,
  manifest: PackageJson,
  overrides: Overrides,
): NodePlan {
  const isOwn = overrides.startCommand !== null || procfileWeb(sources) !== null;
  if (!plan.isWorkspace || plan.folder !== null || isOwn || !runsAllBy(manifest, "start")) return plan;
  const apps = packagesIn(sources).filter((one) => startScript(one.manifest) !== null);
  if (apps.length < 2) return plan;
  const names = named(apps.map(({ folder }) => folder));
  throw new JobError(
    `Found a workspace whose root starts several apps, of which one can listen on the site's port: set rootDir to the one to deploy (${names}), or set startCommand.`,
  );
}

const word = String.raw`[\w:=./@-]+`;
const runsAll = new RegExp(
  `^(?:(?:npx|bunx|npm|pnpm|yarn|bun|run|exec) )*(?:turbo|nx run-many|lerna run|(?:npm|pnpm|yarn|bun) (?:run )?(?:(?:build|start) )?(?:-r|-ws|--recursive|--workspaces|workspaces))(?: ${word})*$`,
);
const runsSome = / (?:-F|-p|--filter|--scope|--projects?|--include|--exclude)(?:[ =]|$)/;

/** By one command, for all of them. */
function runsAllBy(manifest: PackageJson, script: string): boolean {
  const text = scriptOf(manifest, script)?.trim() ?? "";
  return runsAll.test(text) && !runsSome.test(text);
}

const onlyBuildsPackages = (manifest: PackageJson): boolean =>
  runsAllBy(manifest, "build") &&
  ["prebuild", "postbuild", "heroku-postbuild"].every((name) => scriptOf(manifest, name) === null);

const compilesOnly = /^(?:tsc|tsup|tsdown|unbuild|nest build|prisma generate)(?: [\w:=./@-]+)*$/;

function makesNoPage(
  { texts }: Sources,
  { folder, manifest }: { folder: string; manifest: PackageJson },
): boolean {
  const script = scriptOf(manifest, "build")?.trim() ?? null;
  if (script === null) return true;
  const own = new Map(
    [...texts].flatMap(([file, text]) =>
      file.startsWith(`${folder}/`) ? [[file.slice(folder.length + 1), text] as const] : [],
    ),
  );
  const app = { files: new Set<string>(), texts: own };
  if (frameworkServer(withUsedAdapters(app, manifest)) !== null) return !isStaticExport(app, manifest);
  if (hasFramework(manifest)) return false;
  return startScript(manifest) !== null || compilesOnly.test(script);
}

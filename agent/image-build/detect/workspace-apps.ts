import { JobError } from "../../job.ts";
import { named } from "./not-found.ts";
import { dependsOn, scriptOf, startScript, type PackageJson } from "./package-json.ts";
import type { Overrides, Sources } from "./sources.ts";
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
  const apps = packages.filter((one) => startScript(one.manifest) !== null || hasFramework(one.manifest));
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
  return { ...site, apps: names };
}

const word = String.raw`[\w:=./@-]+`;
const runsAll = new RegExp(
  `^(?:(?:npx|bunx|npm|pnpm|yarn|bun|run|exec) )*(?:turbo|nx run-many|lerna run|(?:npm|pnpm|yarn|bun) (?:run (?:build )?)?(?:-r|-ws|--recursive|--workspaces|workspaces))(?: ${word})+$`,
);
const runsSome = / (?:-F|-p|--filter|--scope|--projects?|--include|--exclude)(?:[ =]|$)/;

/** By one command, for all of them. */
function onlyBuildsPackages(manifest: PackageJson): boolean {
  const script = scriptOf(manifest, "build")?.trim() ?? "";
  return (
    runsAll.test(script) &&
    !runsSome.test(script) &&
    ["prebuild", "postbuild", "heroku-postbuild"].every((name) => scriptOf(manifest, name) === null)
  );
}

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
  if (dependsOn(manifest, "next")) return !isStaticExport({ files: new Set(), texts: own }, manifest);
  if (hasFramework(manifest)) return false;
  return startScript(manifest) !== null || compilesOnly.test(script);
}

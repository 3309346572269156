import { ignoredBy } from "../ignored.ts";
import { isLocked } from "./package-manager.ts";
import { buildScriptOf, parsePackageJson, readPackageJson, type PackageJson } from "./package-json.ts";
import { parseYaml, stringsIn, tableIn } from "./parse.ts";
import { textOf, type Sources, type Workspace } from "./sources.ts";

/**
 * The workspace of npm, pnpm, Yarn or Bun at the root of the repository that an app below it is installed by; null where the app
 * is none of its packages, or has a lock file of its own and needs no other package.
 */
export function workspaceOf(app: Sources, root: Sources, folder: string): Workspace | null {
  if (!app.files.has("package.json")) return null;
  if (!packageTest(root)(folder)) return null;
  const { isAlone, needed } = neededBy(app, packagesIn(root));
  return isLocked(app) && isAlone ? null : { root, folder, needed };
}

type Package = { folder: string; manifest: PackageJson };

/** Its packages whose manifests are read: they lie two levels deep at most. */
export function packagesIn(root: Sources): Package[] {
  const isPackage = packageTest(root);
  return [...root.texts].flatMap(([file, text]) => {
    const folder = /^([\w@./-]+)\/package\.json$/.exec(file)?.[1];
    const manifest = folder === undefined || !isPackage(folder) ? null : parsePackageJson(text);
    return folder === undefined || manifest === null ? [] : [{ folder, manifest }];
  });
}

function packageTest(root: Sources): (folder: string) => boolean {
  // The patterns mean the same.
  const matches = ignoredBy(packagesOf(root).join("\n"));
  return (folder) => matches(folder, () => false);
}

/** The packages that an app needs, and whether it needs none, also of those that nothing builds. */
function neededBy(app: Sources, all: readonly Package[]): Pick<Workspace, "needed"> & { isAlone: boolean } {
  const packages = new Map<unknown, Package>(all.map((one) => [one.manifest.name, one]));
  const needed: Workspace["needed"] = [];
  const collect = ({ dependencies, devDependencies }: PackageJson): void => {
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      const found = packages.get(name);
      // Once each, also where packages depend on each other.
      if (found === undefined || !packages.delete(name)) continue;
      collect(found.manifest);
      const script = buildScriptOf(found.manifest);
      if (script !== null) needed.push({ folder: found.folder, script });
    }
  };
  const manifest = readPackageJson(app);
  packages.delete(manifest?.name);
  const others = packages.size;
  collect(manifest ?? {});
  return { needed, isAlone: packages.size === others };
}

function packagesOf(root: Sources): string[] {
  if (root.files.has("pnpm-workspace.yaml"))
    return stringsIn(parseYaml(textOf(root, "pnpm-workspace.yaml"))?.["packages"]);
  const listed: unknown = readPackageJson(root)?.workspaces;
  return stringsIn(Array.isArray(listed) ? listed : tableIn(listed)?.["packages"]);
}

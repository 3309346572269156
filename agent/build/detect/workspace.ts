import { ignoredBy } from "../ignored.ts";
import { isLocked } from "./node.ts";
import { readPackageJson } from "./package-json.ts";
import { textOf, type Sources, type Workspace } from "./sources.ts";

/**
 * The workspace of npm, pnpm, Yarn or Bun at the root of the repository that an app below it is installed by; null where the app
 * has a lock file of its own, or is none of its packages.
 */
export function workspaceOf(app: Sources, root: Sources, folder: string): Workspace | null {
  if (!app.files.has("package.json") || isLocked(app) || !isLocked(root)) return null;
  // The patterns mean the same.
  const isPackage = ignoredBy(packagesOf(root).join("\n"));
  return isPackage(folder, () => false) ? { root, folder } : null;
}

function packagesOf(root: Sources): string[] {
  const ofPnpm = /^[ \t]*-[ \t]*["']?([^"'#\s]+)/gm;
  if (root.files.has("pnpm-workspace.yaml"))
    return [...textOf(root, "pnpm-workspace.yaml").matchAll(ofPnpm)].map(([, pattern = ""]) => pattern);
  const listed: unknown = readPackageJson(root)?.workspaces;
  const packages: unknown = Array.isArray(listed) ? listed : (listed as { packages?: unknown })?.packages;
  return Array.isArray(packages) ? packages.filter((pattern) => typeof pattern === "string") : [];
}

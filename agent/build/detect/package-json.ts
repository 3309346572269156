import { JobError } from "../../host.ts";
import type { Sources } from "./sources.ts";

export type PackageJson = {
  main?: unknown;
  scripts?: Record<string, unknown>;
  dependencies?: Record<string, unknown>;
  devDependencies?: Record<string, unknown>;
  packageManager?: unknown;
  engines?: { node?: unknown };
  workspaces?: unknown;
};

/** @throws JobError when it is there and no JSON object */
export function readPackageJson({ texts }: Sources): PackageJson | null {
  const text = texts.get("package.json");
  if (text === undefined) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new JobError("package.json is not valid JSON: mend it and deploy again.");
}

export const dependsOn = (manifest: PackageJson, name: string): boolean =>
  [manifest.dependencies, manifest.devDependencies].some((list) => Object.keys(list ?? {}).includes(name));

export function scriptOf(manifest: PackageJson, name: string): string | null {
  const script = manifest.scripts?.[name];
  return typeof script === "string" && script.trim() !== "" ? script : null;
}

const devServer =
  /^(?:npx |cross-env \S+ )?(?:react-scripts start|vue-cli-service serve|gatsby (?:develop|serve)|docusaurus (?:start|serve)|astro (?:dev|preview|start)|vite(?: dev| serve| preview)?|vitepress (?:dev|preview|serve)|(?:@11ty\/)?eleventy .*--serve|parcel(?: serve)?|ng serve|webpack(?:-dev-server| serve)|next dev|nuxt dev)\b/;

/** The script that starts the app in production: what a framework's template calls `start` is often its dev server. */
export function startScript(manifest: PackageJson): string | null {
  const script = scriptOf(manifest, "start");
  return script === null || devServer.test(script.trim()) ? null : script;
}

import { jsonIn } from "../../../protocol/json.ts";
import { JobError } from "../../job.ts";
import type { Sources } from "./sources.ts";

export type PackageJson = {
  name?: unknown;
  version?: unknown;
  /** Of the app: package managers hand it to their scripts. */
  config?: unknown;
  main?: unknown;
  module?: unknown;
  scripts?: Record<string, unknown>;
  dependencies?: Record<string, unknown>;
  devDependencies?: Record<string, unknown>;
  optionalDependencies?: Record<string, unknown>;
  packageManager?: unknown;
  engines?: Record<string, unknown>;
  devEngines?: unknown;
  volta?: unknown;
  prisma?: unknown;
  workspaces?: unknown;
};

/** @throws JobError when it is there and no JSON object */
export function readPackageJson({ texts }: Sources): PackageJson | null {
  const text = texts.get("package.json");
  if (text === undefined) return null;
  const manifest = parsePackageJson(text);
  if (manifest !== null) return manifest;
  throw new JobError("package.json is not valid JSON: correct it and deploy again.");
}

/** null where it is no JSON object. */
export function parsePackageJson(text: string): PackageJson | null {
  const value = jsonIn(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
}

export const dependsOn = (manifest: PackageJson, name: string): boolean =>
  [manifest.dependencies, manifest.devDependencies].some((list) => Object.keys(list ?? {}).includes(name));

export function scriptOf(manifest: PackageJson, name: string): string | null {
  const script = manifest.scripts?.[name];
  return typeof script === "string" && script.trim() !== "" ? script : null;
}

/** What may stand before a program: variables, and what sets them. */
const before =
  /(?:(?:set|export) [^&;]*(?:&&|;) *|(?:npx|yarn|pnpm|bunx|cross-env|\w+=(?:"[^"]*"|'[^']*'|[^\s"'])*) +|(?:env-cmd|dotenv)(?: (?:-[ef] \S+|-(?![ef] )\S+|\.\S+))* +)*/;
const devServers =
  /(?:(?:react-scripts|craco|react-app-rewired)(?: --\S+)* start|vue-cli-service serve|gatsby (?:develop|serve)|docusaurus (?:start|serve)|astro (?:dev|preview|start)|vite(?! build)(?: dev| serve| preview)?|vitepress (?:dev|preview|serve)|(?:@11ty\/)?eleventy .*--serve|parcel(?! build)(?: serve)?|ng serve|stencil build(?: --\S+)*? --serve|nx (?:serve|dev)|webpack(?:-dev-server| serve)|next dev|nuxt dev|umi dev|max dev|nitro(?:pack)? dev|react-router dev|remix (?:vite:)?dev|rsbuild dev|ember (?:server?|s)|quasar dev|wrangler (?:pages )?dev(?!.* --ip[ =]))(?![\w-])/;
export const devServer = new RegExp(`^${before.source}(?<name>${devServers.source})`);

const isVueOrVite = (manifest: PackageJson): boolean =>
  dependsOn(manifest, "@vue/cli-service") || dependsOn(manifest, "vite");

/** The script that builds the app, by the name that the generator of its framework gives it. */
export const buildScriptOf = (manifest: PackageJson): string | null =>
  [
    // Heroku runs it in place of the other.
    "heroku-postbuild",
    "build",
    // As in Vue's admin templates. In others it may be anything, such as what makes an image.
    ...(isVueOrVite(manifest) && startScript(manifest) === null ? ["build:prod", "build:production"] : []),
    ...(dependsOn(manifest, "vitepress") || dependsOn(manifest, "vuepress") ? ["docs:build"] : []),
    ...(dependsOn(manifest, "storybook") ? ["build-storybook"] : []),
  ].find((name) => scriptOf(manifest, name) !== null) ?? null;

const expoServer = new RegExp(`^${before.source}expo (?:start|serve)\\b`);
const ejectedServer = new RegExp(`^${before.source}node scripts/start(?:\\.js)?$`);

/** Each starts a server for development only. */
const isForDevelopment = (manifest: PackageJson, script: string): boolean =>
  devServer.test(script) ||
  expoServer.test(script) ||
  // What Create React App leaves once it is ejected.
  (dependsOn(manifest, "react-dev-utils") && ejectedServer.test(script));

/** The script that starts the app in production: what a framework's template calls `start` is often its dev server. */
export function startScript(manifest: PackageJson): string | null {
  const script = scriptOf(manifest, "start");
  const other = /^\s*(?:npm|pnpm|yarn)(?: run)? ([\w:.-]+)\s*$/.exec(script ?? "")?.[1];
  const runs = (other === undefined ? null : scriptOf(manifest, other)) ?? script;
  return runs === null || isForDevelopment(manifest, runs.trim()) ? null : script;
}

/**
 * With what the start script does once it has built the app, as the build has by then: run again at each start, it would take the
 * memory that the pack has for the app. Unchanged where it starts by anything else.
 */
export function withoutSecondBuild(manifest: PackageJson): PackageJson {
  const name = buildScriptOf(manifest);
  const { prestart, ...scripts } = manifest.scripts ?? {};
  const isBuild = (command: unknown): boolean =>
    typeof command === "string" &&
    (/^(?:npm|pnpm|yarn|bun)(?: run)? ([\w:.-]+)$/.exec(command.trim())?.[1] === name ||
      command.trim() === scriptOf(manifest, name ?? "")?.trim());
  const start = scriptOf(manifest, "start");
  const isFree =
    name !== null && start !== null && !start.includes("npm_") && scripts["poststart"] === undefined;
  if (isFree && isBuild(prestart)) return { ...manifest, scripts };
  const [, first, rest] = /^([^&|;]+)&&\s*(\S.*)$/s.exec(start ?? "") ?? [];
  return isFree && prestart === undefined && isBuild(first)
    ? { ...manifest, scripts: { ...scripts, start: rest } }
    : manifest;
}

const mostScripts = 20;

/** A command, and the scripts that it runs in turn. */
export function scriptsBehind(manifest: PackageJson, command: string): string[] {
  const found = [command];
  const names = new Set<string>();
  for (const text of found)
    for (const [, name = ""] of text.matchAll(/\b(?:npm|pnpm|yarn)(?: run)? ([\w:.-]+)/g)) {
      if (names.has(name) || names.size > mostScripts) continue;
      names.add(name);
      const script = scriptOf(manifest, name);
      if (script !== null) found.push(script);
    }
  return found;
}

/** The build script asks PHP: by itself, or by Laravel's Wayfinder, which runs artisan. */
export const buildRunsPhp = (manifest: PackageJson): boolean =>
  dependsOn(manifest, "@laravel/vite-plugin-wayfinder") ||
  scriptsBehind(manifest, scriptOf(manifest, "build") ?? "").some((text) => /(?:^|[\s;&|])php\s/.test(text));

/** Programs whose packages have another name. */
const packageOf: Record<string, string> = {
  "babel-node": "@babel/node",
  dotenv: "dotenv-cli",
  dotenvx: "@dotenvx/dotenvx",
  nest: "@nestjs/cli",
  ng: "@angular/cli",
  "run-p": "npm-run-all",
  "run-s": "npm-run-all",
  tsc: "typescript",
  tsnd: "ts-node-dev",
};

export function onlyForDevelopment(manifest: PackageJson): Set<string> {
  const packages = new Set(Object.keys(manifest.devDependencies ?? {}));
  for (const name of Object.keys(manifest.dependencies ?? {})) packages.delete(name);
  return packages;
}

/** Whether what a command runs is among the packages that are there for development only. */
export function needsDevelopment(manifest: PackageJson, command: string): boolean {
  const packages = onlyForDevelopment(manifest);
  const words = scriptsBehind(manifest, command).flatMap((text) => text.split(/[\s"'`;&|()=]+/));
  return words.some((word) => {
    const parts = word.replace(/^(?:\.\/)?node_modules\/(?:\.bin\/)?/, "").split("/");
    const name = parts.slice(0, word.startsWith("@") ? 2 : 1).join("/");
    return packages.has(packageOf[name] ?? name);
  });
}

import { JobError } from "../../job.ts";
import { dependsOn, scriptOf, startScript, type PackageJson } from "./package-json.ts";
import { configsOf, procfileWeb, textOf, type Overrides, type Sources } from "./sources.ts";

/** It serves what exports a fetch handler, as the build of TanStack Start does. */
export const srvx = "srvx@1.0.8";
const srvxCommand = "srvx --prod -s ../client dist/server/server.js";

/** What a framework's build makes where it makes a server: templates often name no script that starts it. */
const servers: { dependency: string; startCommand?: string; script?: RegExp }[] = [
  { dependency: "@astrojs/node", startCommand: "node dist/server/entry.mjs" },
  { dependency: "@sveltejs/adapter-node", startCommand: "node build" },
  { dependency: "@sveltejs/adapter-auto", startCommand: "node build" },
  { dependency: "@analogjs/platform", startCommand: "node dist/analog/server/index.mjs" },
  { dependency: "nuxt", startCommand: "node .output/server/index.mjs" },
  { dependency: "next", startCommand: "node_modules/.bin/next start" },
  { dependency: "nitro", startCommand: "node .output/server/index.mjs" },
  { dependency: "nitropack", startCommand: "node .output/server/index.mjs" },
  { dependency: "@tanstack/nitro-v2-vite-plugin", startCommand: "node .output/server/index.mjs" },
  { dependency: "@tanstack/react-start", startCommand: srvxCommand },
  { dependency: "@tanstack/solid-start", startCommand: srvxCommand },
  // Only once an adapter for a server was added.
  { dependency: "@builder.io/qwik-city", script: /^serve$/ },
  // Its path has the app's name.
  { dependency: "@angular/ssr", script: /^serve:ssr\b/ },
];

/** As in the templates of Vite and Vike that render on the server, which have no script `start`. */
const ownServerScript = /^(?:preview|prod(?:uction)?|serve|(?:serve|server|start):prod(?:uction)?)$/;
const ownServer = /^(?:cross-env )?NODE_ENV=production (?:node|tsx) (?:[\w.-]+\/)*server[\w./-]*$/;

export function frameworkServer(manifest: PackageJson): string | null {
  const build = scriptOf(manifest, "build");
  if (build === null || /\bnuxt(?:i)? generate\b/.test(build)) return null;
  const framework = servers.find(({ dependency }) => dependsOn(manifest, dependency));
  if (framework?.startCommand !== undefined) return framework.startCommand;
  const names = Object.keys(manifest.scripts ?? {});
  const name =
    names.find((one) => framework?.script?.test(one)) ??
    names.find((one) => ownServerScript.test(one) && ownServer.test(scriptOf(manifest, one) ?? ""));
  return name === undefined ? null : scriptOf(manifest, name);
}

export const isServer = (manifest: PackageJson): boolean =>
  startScript(manifest) !== null || frameworkServer(manifest) !== null;

const cloudflarePlugin = "@cloudflare/vite-plugin";
const importsPlugin = /^[ \t]*import [^;\n]*["']@cloudflare\/vite-plugin["']/m;
const wranglerConfigs = ["wrangler.jsonc", "wrangler.json", "wrangler.toml"];
/** Where Wrangler's configuration names the code of a Worker; without it, there are pages only. */
const namesWorker = /^main[ \t]*=|^[^/\n]*"main"[ \t]*:/m;

/** @throws JobError where the build makes a Worker of Cloudflare's, and nobody starts anything else */
export function demandNoWorker(
  sources: Sources,
  manifest: PackageJson,
  { startCommand }: Pick<Overrides, "startCommand">,
): void {
  const isStarted = startCommand !== null || procfileWeb(sources) !== null || startScript(manifest) !== null;
  if (isStarted || !dependsOn(manifest, cloudflarePlugin)) return;
  const config = configsOf("vite").find((file) => importsPlugin.test(textOf(sources, file)));
  const worker = wranglerConfigs.find((file) => namesWorker.test(textOf(sources, file)));
  if (config !== undefined && worker !== undefined)
    throw new JobError(
      `Found ${cloudflarePlugin} in ${config}, and main in ${worker}: the build makes a Cloudflare Worker, which does not run here, and its pages would be served without it. Build it without the plugin and add a "start" script that starts a server, or set outputDir to dist/client to serve the pages alone.`,
    );
}

/** The code of a Worker of Cloudflare's listens nowhere. */
export const isWorkerCode = (sources: Sources, path: string): boolean =>
  wranglerConfigs
    .map((file) => textOf(sources, file))
    .some((text) => text.includes(`"${path}"`) || text.includes(`"./${path}"`));

const isAdapter = (name: string): boolean => name.startsWith("@sveltejs/adapter-");

/** Without the adapters of SvelteKit that are installed and not used: the one of its template often stays beside another. */
export function withUsedAdapters(sources: Sources, manifest: PackageJson): PackageJson {
  const used = ["svelte", "vite"]
    .flatMap(configsOf)
    .flatMap((file) => [
      ...textOf(sources, file).matchAll(/^[ \t]*import [^;\n]*["'](@sveltejs\/adapter-[\w-]+)["']/gm),
    ])
    .map(([, name]) => name);
  if (used.length === 0) return manifest;
  const usedOf = (list: PackageJson["dependencies"]) =>
    Object.fromEntries(
      Object.entries(list ?? {}).filter(([name]) => !isAdapter(name) || used.includes(name)),
    );
  return {
    ...manifest,
    dependencies: usedOf(manifest.dependencies),
    devDependencies: usedOf(manifest.devDependencies),
  };
}

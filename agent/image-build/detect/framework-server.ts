import { dependsOn, scriptOf, type PackageJson } from "./package-json.ts";
import { configsOf, textOf, type Sources } from "./sources.ts";

/** It serves what exports a fetch handler, as the build of TanStack Start does. */
export const srvx = "srvx@1.0.8";
export const srvxCommand = "srvx --prod -s ../client dist/server/server.js";

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

export function frameworkServer(manifest: PackageJson): string | null {
  const build = scriptOf(manifest, "build");
  if (build === null || /\bnuxt(?:i)? generate\b/.test(build)) return null;
  const { startCommand, script } = servers.find(({ dependency }) => dependsOn(manifest, dependency)) ?? {};
  const name = script && Object.keys(manifest.scripts ?? {}).find((one) => script.test(one));
  return startCommand ?? (name === undefined ? null : scriptOf(manifest, name));
}

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

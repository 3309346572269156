import { dependsOn, scriptOf, type PackageJson } from "./package-json.ts";

/** What a framework's build makes where it makes a server: templates often name no script that starts it. */
const servers: { dependency: string; startCommand?: string; script?: RegExp }[] = [
  { dependency: "@astrojs/node", startCommand: "HOST=0.0.0.0 node dist/server/entry.mjs" },
  { dependency: "@sveltejs/adapter-node", startCommand: "node build" },
  { dependency: "@sveltejs/adapter-auto", startCommand: "node build" },
  { dependency: "nuxt", startCommand: "node .output/server/index.mjs" },
  { dependency: "next", startCommand: "node_modules/.bin/next start" },
  { dependency: "nitro", startCommand: "node .output/server/index.mjs" },
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

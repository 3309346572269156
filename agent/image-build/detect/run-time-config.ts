import { dependsOn, onlyForDevelopment, scriptsBehind, type PackageJson } from "./package-json.ts";
import { configsOf, present, textOf, type Sources } from "./sources.ts";

/** Programs that read their configuration when the app starts, too; Next.js's is behind custom servers as well. */
const readers: { framework: string; program?: RegExp }[] = [
  { framework: "next" },
  { framework: "vite", program: /(?:^|[\s/])vite\s+preview\b/ },
  { framework: "astro", program: /(?:^|[\s/])astro\s+preview\b/ },
  { framework: "nuxt", program: /(?:^|[\s/])nux(?:t|i)\s+(?:start|preview)\b/ },
  { framework: "svelte", program: /(?:^|[\s/])vite\s+preview\b/ },
  { framework: "waku", program: /(?:^|[\s/])waku\s+start\b/ },
];
const names = /["'`]((?:@[\w.-]{1,100}\/)?[\w.-]{1,100})/g;
const ownFile = /(?:\bfrom|\bimport|\brequire)\s{0,10}\(?\s{0,10}["'`]\.{1,2}\//;

/**
 * Whether a configuration that is read when the app starts may load a package that is there for development only: it names one, or
 * a file of the repository that may.
 */
export function configNeedsDevelopment(sources: Sources, manifest: PackageJson, command: string): boolean {
  const commands = scriptsBehind(manifest, command);
  const packages = onlyForDevelopment(manifest);
  return readers
    .filter(({ framework, program }) =>
      program ? commands.some((text) => program.test(text)) : dependsOn(manifest, framework),
    )
    .flatMap(({ framework }) => present(sources, configsOf(framework)))
    .map((file) => textOf(sources, file))
    .some(
      (text) => ownFile.test(text) || [...text.matchAll(names)].some(([, name = ""]) => packages.has(name)),
    );
}

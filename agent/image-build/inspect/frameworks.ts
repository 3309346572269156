import { dependsOn, parsePackageJson } from "../detect/package-json.ts";
import type { Plan } from "../detect/plan.ts";
import { manifestText, pythonManifests } from "../detect/requirements.ts";
import { textOf, type Sources } from "../detect/sources.ts";

const inPython = (name: string): RegExp => new RegExp(`^[ \\t"']*${name}\\b(?!-)`, "im");
const inGemfile = (name: string): RegExp => new RegExp(`^[ \\t]*gem ["']${name}["']`, "m");

/** By package of npm's; those that build on others first. */
const ofNode: [dependency: string, name: string][] = [
  ["next", "Next.js"],
  ["nuxt", "Nuxt"],
  ["astro", "Astro"],
  ["@sveltejs/kit", "SvelteKit"],
  ["@remix-run/node", "Remix"],
  ["@remix-run/react", "Remix"],
  ["@react-router/dev", "React Router"],
  ["@tanstack/react-start", "TanStack Start"],
  ["@tanstack/solid-start", "TanStack Start"],
  ["@builder.io/qwik-city", "Qwik City"],
  ["@angular/core", "Angular"],
  ["gatsby", "Gatsby"],
  ["@docusaurus/core", "Docusaurus"],
  ["vitepress", "VitePress"],
  ["vuepress", "VuePress"],
  ["@11ty/eleventy", "Eleventy"],
  ["hexo", "Hexo"],
  ["expo", "Expo"],
  ["react-scripts", "Create React App"],
  ["@vue/cli-service", "Vue CLI"],
  ["@nestjs/core", "NestJS"],
  ["@adonisjs/core", "AdonisJS"],
  ["@strapi/strapi", "Strapi"],
  ["fastify", "Fastify"],
  ["hono", "Hono"],
  ["koa", "Koa"],
  ["express", "Express"],
  ["vike", "Vike"],
  ["vite", "Vite"],
  ["parcel", "Parcel"],
];

/** By manifest; those that build on others first. */
const known: [language: Plan["kind"], files: string[], names: [sign: RegExp, name: string][]][] = [
  [
    "python",
    pythonManifests,
    (
      [
        ["django", "Django"],
        ["fastapi", "FastAPI"],
        ["flask", "Flask"],
        ["streamlit", "Streamlit"],
        ["starlette", "Starlette"],
        ["sanic", "Sanic"],
        ["mkdocs", "MkDocs"],
      ] as const
    ).map(([name, shown]) => [inPython(name), shown]),
  ],
  [
    "ruby",
    ["Gemfile"],
    (
      [
        ["rails", "Rails"],
        ["sinatra", "Sinatra"],
        ["jekyll", "Jekyll"],
      ] as const
    ).map(([name, shown]) => [inGemfile(name), shown]),
  ],
  [
    "php",
    ["composer.json"],
    [
      [/"laravel\/framework"/, "Laravel"],
      [/"symfony\/framework-bundle"/, "Symfony"],
      [/"slim\/slim"/, "Slim"],
    ],
  ],
  [
    "go",
    ["go.mod"],
    [
      [/github\.com\/gin-gonic\/gin\b/, "Gin"],
      [/github\.com\/labstack\/echo\b/, "Echo"],
      [/github\.com\/gofiber\/fiber\b/, "Fiber"],
    ],
  ],
];

const takesFromNpm: Plan["kind"][] = ["node", "site", "deno"];

/** What an app of that language is made with, for people; null where nothing tells. Where it is not known which, that of any. */
export function frameworkOf(sources: Sources, language: Plan["kind"] | null): string | null {
  if (language === null || takesFromNpm.includes(language)) {
    const manifest = parsePackageJson(textOf(sources, "package.json"));
    const used = manifest && ofNode.find(([dependency]) => dependsOn(manifest, dependency));
    if (used) return used[1];
  }
  for (const [one, files, names] of known) {
    if (language !== null && language !== one) continue;
    const texts = files.map((file) => manifestText(sources, file));
    const found = names.find(([sign]) => texts.some((text) => sign.test(text)));
    if (found) return found[1];
  }
  return null;
}

import { manifestText, pythonManifests } from "../detect/requirements.ts";
import type { Sources } from "../detect/sources.ts";

const inPackageJson = (name: string): RegExp => new RegExp(`"${name}"\\s*:\\s*"`);
const inPython = (name: string): RegExp => new RegExp(`^[ \\t"']*${name}\\b(?!-)`, "im");
const inGemfile = (name: string): RegExp => new RegExp(`^[ \\t]*gem ["']${name}["']`, "m");

/** By manifest; those that build on others first. */
const known: [files: string[], names: [sign: RegExp, name: string][]][] = [
  [
    ["package.json"],
    (
      [
        ["next", "Next.js"],
        ["nuxt", "Nuxt"],
        ["astro", "Astro"],
        ["@sveltejs/kit", "SvelteKit"],
        ["@remix-run/(?:node|react)", "Remix"],
        ["@react-router/dev", "React Router"],
        ["@tanstack/(?:react|solid)-start", "TanStack Start"],
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
        ["vite", "Vite"],
        ["parcel", "Parcel"],
      ] as const
    ).map(([name, shown]) => [inPackageJson(name.replaceAll(".", "\\.")), shown]),
  ],
  [
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
    ["composer.json"],
    [
      [/"laravel\/framework"/, "Laravel"],
      [/"symfony\/framework-bundle"/, "Symfony"],
      [/"slim\/slim"/, "Slim"],
    ],
  ],
  [
    ["go.mod"],
    [
      [/github\.com\/gin-gonic\/gin\b/, "Gin"],
      [/github\.com\/labstack\/echo\b/, "Echo"],
      [/github\.com\/gofiber\/fiber\b/, "Fiber"],
    ],
  ],
];

/** What an app is made with, for people; null where nothing tells. */
export function frameworkOf(sources: Sources): string | null {
  for (const [files, names] of known) {
    const texts = files.map((file) => manifestText(sources, file));
    const found = names.find(([sign]) => texts.some((text) => sign.test(text)));
    if (found) return found[1];
  }
  return null;
}

import { JobError } from "../../job.ts";
import { nodeBuild, onlyWorkspace, type NodeBuild } from "./node.ts";
import { readStaticRules, readStaticfile, type StaticRules } from "./static-rules.ts";
import { dependsOn, scriptOf, type PackageJson } from "./package-json.ts";
import { configsOf, present, textOf, type Overrides, type Sources } from "./sources.ts";

/** Files as they are. */
export type StaticPlan = {
  rules?: StaticRules;
  kind: "static";
  /** The folder of the repository that holds them, where it is not its root. */
  folder?: string;
  singlePage?: boolean;
};
type Adapter = { name: string; host: string; instead: string };
/** Files that a build makes. */
export type SitePlan = NodeBuild & {
  kind: "site";
  rules?: StaticRules;
  /** Where the build may put the site, likeliest first; a `*` stands for any name. */
  outputs: string[];
  /** What builds it for the servers of one host only, and what does for any. */
  adapter?: Adapter | undefined;
  /** What to do where it leaves no page. */
  remedy?: string;
  /** Those of the workspace whose root is built, for a sentence. */
  apps?: string;
  /** Those of them that are servers, which this site does not start. */
  servers?: string[];
  /** It is there, as the owner says. */
  isOutputGiven?: boolean;
  /** One page that routes itself: it is also served for paths that are no file. null: where the build leaves no other page. */
  singlePage: boolean | null;
  /** The page for such paths beside pages of their own: the first of these that the build makes. */
  fallbacks?: string[];
};

type Framework = {
  dependency: string;
  outputs: string[];
  /** Where the output folder is set, and the setting. */
  configs?: string[];
  setting?: RegExp;
  singlePage?: (sources: Sources) => boolean | null;
  fallbacks?: (sources: Sources) => string[];
  remedy?: string;
};

const outDir = /\boutDir:\s*["'`]([^"'`]{1,200})["'`]/;
const onlyIndex = ({ files }: Sources): boolean =>
  [...files].filter((file) => /^[^/]+\.html$/.test(file)).length === 1;
const noErrorPage = ({ files }: Sources): boolean => !files.has("public/404.html");

/** Its configuration says whether each route is a page of its own; one page for all is the default. */
const isExpoSinglePage = (sources: Sources): boolean =>
  !/"output"\s{0,20}:\s{0,20}"(?:static|server)"/.test(textOf(sources, "app.json"));

const prerenders = (sources: Sources): boolean =>
  configsOf("react-router").some((file) => /^[^/\n]*\bprerender\b/m.test(textOf(sources, file)));

/** The page that adapter-static makes by its option; a host has names of its own for two. */
const svelteFallbacks = (sources: Sources): string[] =>
  ["svelte", "vite"]
    .flatMap(configsOf)
    .flatMap((file) => /\bfallback:\s*["'`]([\w-]+\.html)["'`]/.exec(textOf(sources, file))?.[1] ?? [])
    .filter((page) => page !== "200.html" && page !== "404.html");

/** Those that build on others first: an Astro site depends on Vite, too. */
const frameworks: Framework[] = [
  { dependency: "astro", outputs: ["dist"], configs: configsOf("astro"), setting: outDir },
  { dependency: "gatsby", outputs: ["public"] },
  { dependency: "@docusaurus/core", outputs: ["build"] },
  { dependency: "vitepress", outputs: [".vitepress/dist", "docs/.vitepress/dist", "*/.vitepress/dist"] },
  // Its build copies the page to 404.html, too.
  { dependency: "@slidev/cli", outputs: ["dist"], singlePage: () => true },
  { dependency: "vuepress", outputs: [".vuepress/dist", "docs/.vuepress/dist", "*/.vuepress/dist"] },
  {
    dependency: "@11ty/eleventy",
    outputs: ["_site"],
    configs: [".eleventy.js", ...configsOf("eleventy")],
    setting: /\boutput:\s*["'`]([^"'`]{1,200})["'`]/,
  },
  {
    dependency: "next",
    outputs: ["out"],
    configs: configsOf("next"),
    setting: /\bdistDir:\s*["'`]([^"'`]{1,200})["'`]/,
  },
  { dependency: "nuxt", outputs: [".output/public", "dist"] },
  { dependency: "@sveltejs/kit", outputs: ["build"], fallbacks: svelteFallbacks },
  {
    dependency: "@react-router/dev",
    outputs: ["build/client"],
    singlePage: (sources) => noErrorPage(sources) && !prerenders(sources),
    // The second where no page for the root is made beforehand.
    fallbacks: (sources) =>
      noErrorPage(sources) && prerenders(sources) ? ["__spa-fallback.html", "index.html"] : [],
  },
  { dependency: "hexo", outputs: ["public"] },
  { dependency: "expo", outputs: ["dist"], singlePage: isExpoSinglePage },
  { dependency: "@analogjs/platform", outputs: ["dist/analog/public"] },
  {
    dependency: "@angular/core",
    outputs: ["dist/*/browser", "dist/browser", "dist/*", "dist"],
    singlePage: noErrorPage,
  },
  { dependency: "react-scripts", outputs: ["build"], singlePage: noErrorPage },
  {
    dependency: "@vue/cli-service",
    outputs: ["dist"],
    configs: configsOf("vue"),
    setting: /\boutputDir:\s*["'`]([^"'`]{1,200})["'`]/,
    singlePage: noErrorPage,
  },
  {
    dependency: "vike",
    outputs: ["dist/client"],
    singlePage: () => null,
    remedy:
      'Vike renders pages while it builds only if prerender is true in its configuration: set it, or add a "start" script that starts a server.',
  },
  {
    dependency: "vite",
    outputs: ["dist"],
    configs: configsOf("vite"),
    setting: outDir,
    // Its page may lie in a folder, such as that of an app of a monorepo.
    singlePage: (sources) =>
      sources.files.has("index.html") ? onlyIndex(sources) && noErrorPage(sources) : null,
  },
  { dependency: "parcel", outputs: ["dist"] },
  { dependency: "@stencil/core", outputs: ["www"] },
  // Create React App, ejected.
  { dependency: "react-dev-utils", outputs: ["build"], singlePage: noErrorPage },
];
/** A build that no framework is known of. `public` is last: it is a source folder as often. */
const unknown: Framework = {
  dependency: "",
  outputs: ["dist", "build", "out", "_site", "public"],
  singlePage: () => null,
};

const frameworkOf = (manifest: PackageJson): Framework | undefined =>
  frameworks.find(({ dependency }) => dependsOn(manifest, dependency));

export const hasFramework = (manifest: PackageJson): boolean => frameworkOf(manifest) !== undefined;

const exports = [
  { dependency: "next", configs: configsOf("next"), setting: /^[^/\n]*\boutput:\s*["'`]export["'`]/m },
  {
    dependency: "@react-router/dev",
    configs: configsOf("react-router"),
    setting: /^[^/\n]*\bssr:\s*false\b/m,
  },
  { dependency: "@analogjs/platform", configs: configsOf("vite"), setting: /^[^/\n]*\bstatic:\s*true\b/m },
];

/** A framework writes files instead of being a server. */
export const isStaticExport = (sources: Sources, manifest: PackageJson): boolean =>
  exports.some(
    ({ dependency, configs, setting }) =>
      dependsOn(manifest, dependency) && configs.some((file) => setting.test(textOf(sources, file))),
  );

const hosts = ["Vercel", "Netlify", "Cloudflare"];
const adapters: Adapter[] = hosts.flatMap((host) => [
  { name: `@sveltejs/adapter-${host.toLowerCase()}`, host, instead: "@sveltejs/adapter-node" },
  { name: `@astrojs/${host.toLowerCase()}`, host, instead: "@astrojs/node" },
]);

/** What to add to a framework that as its generator makes it leaves nothing that can be served. */
function lacksAdapter({ files }: Sources, manifest: PackageJson): string | null {
  if (dependsOn(manifest, "@builder.io/qwik-city") && !files.has("adapters/"))
    return "Qwik City produces nothing that can be served without an adapter: run npm run qwik add express, or npm run qwik add static for files only, and commit the result.";
  return null;
}

/** A site that a build script makes, or null when there is none. @throws JobError when its build would make none */
export function detectSite(sources: Sources, manifest: PackageJson, overrides: Overrides): SitePlan | null {
  const build = nodeBuild(sources, manifest, overrides);
  if (build.buildCommand === null) {
    if (!hasFramework(manifest)) return null;
    throw (
      onlyWorkspace(sources, build, "builds") ??
      new JobError('package.json has no "build" script: add one, or set buildCommand.')
    );
  }
  const lacking = lacksAdapter(sources, manifest);
  if (lacking !== null) throw new JobError(lacking);
  const framework = frameworkOf(manifest) ?? unknown;
  return {
    kind: "site",
    ...build,
    outputs: [
      ...new Set([
        ...namedOutput(sources, manifest, framework),
        ...framework.outputs,
        ...(dependsOn(manifest, "storybook") ? ["storybook-static"] : []),
      ]),
    ],
    singlePage: framework.singlePage ? framework.singlePage(sources) : false,
    ...(framework.fallbacks && { fallbacks: framework.fallbacks(sources) }),
    adapter: adapters.find(({ name }) => dependsOn(manifest, name)),
    ...(framework.remedy !== undefined && { remedy: framework.remedy }),
  };
}

/** The output folder that the build script or the framework's configuration names. */
function namedOutput(
  sources: Sources,
  manifest: PackageJson,
  { configs = [], setting }: Framework,
): string[] {
  const option = /\s--(?:outDir|out-dir|dist-dir|dest|output)[= ]["']?([^\s"']{1,200})/.exec(
    scriptOf(manifest, "build") ?? "",
  )?.[1];
  const texts = present(sources, configs).map((file) => textOf(sources, file));
  const set = setting && texts.map((text) => setting.exec(text)?.[1]).find((found) => found !== undefined);
  const folder = (option ?? set)?.replace(/^\.\//, "").replace(/\/+$/, "");
  return folder !== undefined && /^(?!.*\.\.)[\w.][\w./-]*$/.test(folder) && folder !== "." ? [folder] : [];
}

/** With what the files say that are published with a site. */
export function withFilesRules(plan: StaticPlan | SitePlan, sources: Sources): StaticPlan | SitePlan {
  const { root, singlePage } = readStaticfile(sources);
  const folders =
    plan.kind === "site" ? ["public/", "static/", ""] : [plan.folder === undefined ? "" : `${plan.folder}/`];
  const rules = readStaticRules(sources, folders);
  return {
    ...plan,
    ...(plan.kind === "site" &&
      root !== null &&
      !plan.isOutputGiven && { outputs: [...new Set([root, ...plan.outputs])] }),
    ...(singlePage !== null && { singlePage }),
    ...(Object.values(rules).some((list) => list.length > 0) && { rules }),
  };
}

/** Files as they are, in a folder or at the root. @throws JobError where the folder is not there */
export function planOfFiles({ files }: Sources, folder: string | null, setting: string): StaticPlan {
  if (folder === null) return { kind: "static" };
  // Farther down is not looked at.
  if (folder.split("/").length < 3 && !files.has(`${folder}/`))
    throw new JobError(`The folder ${folder} does not exist in the repository: check ${setting}.`);
  return { kind: "static", folder };
}

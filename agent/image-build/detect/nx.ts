import { JobError } from "../../job.ts";
import { buildScriptOf, dependsOn, parsePackageJson, readPackageJson, startScript } from "./package-json.ts";
import { tableIn } from "./parse.ts";
import { configsOf, present, textOf, type Overrides, type Sources } from "./sources.ts";

type App = { folder: string; name: string };

/** What builds and starts the app of an Nx workspace whose package.json says neither. @throws JobError when it may be one of several */
export function withNx(sources: Sources, overrides: Overrides): Overrides {
  const manifest = sources.files.has("nx.json") ? readPackageJson(sources) : null;
  const isAsked =
    manifest !== null &&
    overrides.buildCommand === null &&
    dependsOn(manifest, "nx") &&
    buildScriptOf(manifest) === null &&
    startScript(manifest) === null;
  const apps = isAsked ? appsOf(sources) : [];
  const [app, ...others] = apps;
  if (app === undefined) return overrides;
  const names = apps.slice(0, mostNamed).map(({ name }) => name);
  if (others.length > 0)
    throw new JobError(
      `Found an Nx workspace of several apps (${names.join(", ")}): set buildCommand to npx nx build with the name of one of them, and startCommand to what starts it, such as cd ${app.folder} && npx next start.`,
    );
  return {
    ...overrides,
    buildCommand: `npx nx build ${app.name}`,
    startCommand: overrides.startCommand ?? startOf(sources, app),
  };
}

const mostNamed = 5;
/** Both are words of a command. */
const isName = (name: unknown): name is string =>
  typeof name === "string" && /^@?\w[\w.-]*(?:\/\w[\w.-]*)?$/.test(name);

function appsOf(sources: Sources): App[] {
  const folders = [...sources.files].flatMap((file) => /^(apps\/\w[\w.-]*)\/$/.exec(file)?.[1] ?? []);
  return folders.flatMap((folder) => {
    const manifests = ["project.json", "package.json"].map((file) => `${folder}/${file}`);
    const configs = ["next", "vite"].flatMap(configsOf).map((file) => `${folder}/${file}`);
    // Beside each app, its generator makes one that tests it.
    if (folder.endsWith("-e2e") || present(sources, [...manifests, ...configs]).length === 0) return [];
    const named = manifests.map((file) => parsePackageJson(textOf(sources, file))?.name).find(isName);
    return [{ folder, name: named ?? folder.slice(folder.indexOf("/") + 1) }];
  });
}

/** null where the build makes a folder of files. */
function startOf(sources: Sources, { folder }: App): string | null {
  const build = tableIn(parsePackageJson(textOf(sources, `${folder}/project.json`)), "targets", "build");
  const path = tableIn(build, "options")?.["outputPath"];
  const output = typeof path === "string" && /^\w[\w-]*(?:\/\w[\w-]*)*$/.test(path) ? path : null;
  const isNext =
    present(
      sources,
      configsOf("next").map((file) => `${folder}/${file}`),
    ).length > 0;
  if (isNext) return `cd ${output ?? folder} && exec npx next start`;
  const isServer = /^@(?:nx|nrwl)\/(?:esbuild|js|node|webpack):/.test(String(build?.["executor"]));
  const isSite = sources.files.has(`${folder}/index.html`) || sources.files.has(`${folder}/src/index.html`);
  return isServer && !isSite && output !== null ? `node ${output}/main.js` : null;
}

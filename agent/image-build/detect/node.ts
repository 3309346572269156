import { isDeepStrictEqual } from "node:util";
import { JobError } from "../../job.ts";
import { deepest } from "../read-sources.ts";
import { afterBuildOf, frameworkEnvironment } from "./framework-environment.ts";
import { frameworkServer, isWorkerCode, srvx } from "./framework-server.ts";
import { appsBelow, notByItself } from "./not-found.ts";
import { allows } from "./newest-minor.ts";
import { askedNode, nodeMajor } from "./node-version.ts";
import {
  buildScriptOf,
  dependsOn,
  needsDevelopment,
  parsePackageJson,
  readPackageJson,
  scriptOf,
  scriptsBehind,
  startScript,
  type PackageJson,
} from "./package-json.ts";
import {
  approvesNoScripts,
  bunRelease,
  locksOf,
  namedBy,
  packageManagerOf,
  programOf,
  releaseOf,
  yarnFileOf,
  type PackageManager,
} from "./package-manager.ts";
import { parseYaml, stringsIn } from "./parse.ts";
import { configNeedsDevelopment } from "./run-time-config.ts";
import {
  configsOf,
  gitPackages,
  placeOf,
  present,
  procfileRelease,
  procfileWeb,
  textOf,
  type Overrides,
  type OwnInstall,
  type Sources,
} from "./sources.ts";

/** How the dependencies are installed and the build script is run. */
export type NodeBuild = OwnInstall & {
  major: number;
  /** Where the app lies in the workspace that is installed; null at its root. */
  folder: string | null;
  /** Where it lies in the repository that is built with it, where it is installed in its own folder. */
  within: string | null;
  packageManager: PackageManager;
  /** The release of the package manager that understands the lock file, where package.json names no other. */
  release: string | null;
  /** Where in the repository the release of Yarn lies that is used; nothing is fetched then. */
  yarnFile: string | null;
  /** Its Yarn is taken from npm's registry, as all packages are, and not from Yarn's own host, which has every 2.x. */
  yarnFromNpm: boolean;
  /** Manifest files copied before the install, so that it is cached while they stay the same. */
  manifests: string[];
  /** The install reads more than the manifests: the whole source is copied before it. */
  needsSource: boolean;
  /** Scripts of its own that an install runs, and that are run once the source is there: they need it, the packages do not. */
  ownScripts: string[];
  /** Dependencies are loaded from Yarn's cache, without node_modules. */
  plugAndPlay: boolean;
  locked: boolean;
  /** The release of Bun that npm installs, such as bun@1.3.2 or bun; null for an app that has nothing to do with it. */
  bun: string | null;
  hasDependencies: boolean;
  /** The lock file says that no package runs anything when it is installed: none is compiled. */
  runsNoScripts: boolean;
  /** It says nothing of which packages' install scripts pnpm is to run. */
  approvesNoScripts: boolean;
  hasDevDependencies: boolean;
  /** Packages of the repository are installed together. */
  isWorkspace: boolean;
  /** It is bundled by a webpack that is older than the OpenSSL of its Node. */
  isOfWebpack4: boolean;
  /** Variables of its frameworks, for the build and the app. */
  environment: string[];
  /** What makes the code that a library is without until then; run before the build. */
  generateCommand: string | null;
  /** Debian's packages that it needs where it is built and where it runs. */
  libraries: string[];
  /** It opens pages in Chromium. */
  runsBrowser: boolean;
  /** Those that only its install and its build need. */
  installPackages: string[];
  /** Folders in which a build finds what the last one compiled; no app reads them. */
  compiled: string[];
  /** What is run before it, and in which folders: it builds the packages of the workspace that the app needs. */
  needed: { folder: string; command: string }[];
  buildCommand: string | null;
  /** Run once it has built. */
  afterBuild: string | null;
};
export type NodePlan = NodeBuild & {
  kind: "node";
  startCommand: string;
  /** What a package manager tells a start script, where the app is started without one. */
  startVariables: string[];
  /** What starts it, or is run before that, is installed for development only. */
  startsByDevelopment: boolean;
  /** Next.js puts together what it needs to run. */
  standalone: boolean;
  /** A package that serves what the build makes, and is none of the app's own. */
  server: string | null;
  /** Files of variables that Node would not start without, and that are not in the repository, as they should not be. */
  envFiles: string[];
};

export function detectNode(sources: Sources, manifest: PackageJson, overrides: Overrides): NodePlan {
  const build = nodeBuild(sources, manifest, overrides);
  const whole = withRoot(sources, manifest);
  const given = overrides.startCommand ?? procfileWeb(sources);
  const direct = given === null ? directStart(sources, manifest, build) : null;
  const startCommand =
    given ??
    direct?.command ??
    startOf(sources, manifest, build, whole) ??
    frameworkServer(manifest) ??
    entryCommand(sources, manifest);
  if (startCommand === null) throw startsNothing(sources, build);
  const release = overrides.releaseCommand ?? procfileRelease(sources);
  const standalone = given === null && release === null && isStandalone(sources, manifest);
  return {
    kind: "node",
    ...build,
    startCommand: standalone ? "HOSTNAME=0.0.0.0 node server.js" : startCommand,
    startVariables: standalone ? [] : (direct?.variables ?? []),
    standalone,
    server: given === null && /^srvx\s/.test(startCommand) && !dependsOn(manifest, "srvx") ? srvx : null,
    envFiles: missingEnvFiles(sources, given ?? scriptOf(manifest, "start") ?? ""),
    startsByDevelopment:
      [startCommand, release].some(
        (command) =>
          command !== null &&
          (needsDevelopment(whole, command) ||
            startsPackage(manifest, command) ||
            compilesFirst(whole, command)),
      ) ||
      readsTypeScript(sources, manifest) ||
      configNeedsDevelopment(sources, whole, startCommand) ||
      leavesPackagesOut(manifest, build) ||
      // Its template lists what its server imports among what is for development.
      dependsOn(manifest, "@builder.io/qwik-city") ||
      // Yarn 1 puts the files of packages back when it leaves others out.
      (build.packageManager === "yarn" && dependsOn(whole, "patch-package")),
  };
}

/** With the packages of the workspace's root, which its apps find as they do their own. */
function withRoot({ workspace }: Sources, manifest: PackageJson): PackageJson {
  const root = workspace ? readPackageJson(workspace.root) : null;
  return {
    ...manifest,
    dependencies: { ...root?.dependencies, ...manifest.dependencies },
    devDependencies: { ...root?.devDependencies, ...manifest.devDependencies },
  };
}

/** An empty one does: the variables are those of the site. */
function missingEnvFiles({ files }: Sources, command: string): string[] {
  const named = command.matchAll(/\s--env-file[= ]["']?(?:\.\/)?([\w.][\w.-]{0,99})(?=["'\s])/g);
  return [...named].map(([, name = ""]) => name).filter((name) => !files.has(name));
}

/** Why the root of a workspace is not what to deploy; null elsewhere, and where no package is found. */
export function onlyWorkspace(
  { files }: Sources,
  { isWorkspace, folder }: NodeBuild,
  lacking: "starts" | "builds",
): JobError | null {
  const apps = isWorkspace && folder === null ? appsBelow([...files]) : null;
  const setting = { starts: "startCommand", builds: "buildCommand" }[lacking];
  return apps === null
    ? null
    : new JobError(
        `Found a workspace whose root ${lacking} nothing: set rootDir to the package to deploy (${apps}), or set ${setting}.`,
      );
}

function startsNothing(sources: Sources, build: NodeBuild): JobError {
  // A page below an app is a part of it.
  const apps = appsBelow([...sources.files].filter((file) => !file.endsWith("/index.html")));
  const elsewhere = apps === null ? "" : `, or set rootDir to the folder of the app (${apps})`;
  return (
    onlyWorkspace(sources, build, "starts") ??
    notByItself(sources) ??
    new JobError(
      `package.json has neither a "start" script nor a "main" file: add one, or set startCommand${elsewhere}.`,
    )
  );
}

/** Next.js's own server, where it lies by default, does what the start script does. */
function isStandalone(sources: Sources, manifest: PackageJson): boolean {
  const configs = configsOf("next")
    .map((file) => textOf(sources, file))
    .join("\n");
  return (
    (sources.workspace ?? sources.repository ?? null) === null &&
    scriptOf(manifest, "start")?.trim() === "next start" &&
    /^[^/\n?&]*\boutput:\s*["'`]standalone["'`]/m.test(configs) &&
    !/\b(?:outputFileTracingRoot|distDir)\b/.test(configs)
  );
}

/** A script of one of the workspace's packages, which may run whatever that lists. */
const startsPackage = (manifest: PackageJson, command: string): boolean =>
  scriptsBehind(manifest, command).some((text) =>
    /(?:^|[\s;&|])(?:npm|pnpm|yarn|bun) (?:.{0,200} )?(?:--workspace|-w|--filter|-F|workspace)[ =]/.test(
      text,
    ),
  );

/** Compilers read types, plug-ins and styles, and nodemon runs what its configuration says: all of it is listed for development. */
const compilesFirst = (manifest: PackageJson, command: string): boolean =>
  scriptsBehind(manifest, command).some((text) =>
    /(?:^|[\s/=])(?:ts-node(?:-dev|-esm)?|tsnd|nodemon)(?:\/\S+)?(?:\s|$)|\b(?:astro|gatsby|next|nuxi|nuxt|react-router|remix|strapi|vite) build\b/.test(
      text,
    ),
  );

/** Next.js reads its configuration when it starts, and installs TypeScript for it where there is none. */
const readsTypeScript = (sources: Sources, manifest: PackageJson): boolean =>
  dependsOn(manifest, "next") && present(sources, ["next.config.ts", "next.config.mts"]).length > 0;

/** esbuild leaves the import of each package in the server that it makes, and may meet one that is there for development. */
const leavesPackagesOut = (manifest: PackageJson, { buildCommand }: NodeBuild): boolean =>
  scriptsBehind(manifest, buildCommand ?? "").some((text) => /--packages[= ]external\b/.test(text));

/** Where `start` is for development, as in Nest's template, `start:prod` is what starts the app. */
function scriptCommand(manifest: PackageJson, program: string, whole: PackageJson): string | null {
  const script = startScript(manifest);
  if (script === null) return null;
  if (/^\s*(?:(?:cross-env|\w+=\S*)\s+)*deno\s/.test(script) && !dependsOn(whole, "deno"))
    throw new JobError(
      'The "start" script runs Deno, which is not installed: add the package deno to the dependencies, or add a Dockerfile.',
    );
  // As in TanStack Start's examples. What is to fetch it may be missing, and would do so each time that the app starts.
  const served = /^(?:pnpx|npx|bunx|pnpm dlx) (srvx(?: [\w./-]+)+)$/.exec(script.trim())?.[1];
  if (served !== undefined) return served;
  if (dependsOn(manifest, "@adonisjs/core") && /^node bin\/server\.js$/.test(script.trim()))
    return `cd build && HOST=0.0.0.0 ${script.trim()}`;
  // Its build lies there, with a package.json of its own; npm also looks for programs in the folders above.
  if (script.trim() === "medusa start" && /\bmedusa build\b/.test(scriptOf(manifest, "build") ?? ""))
    return "cd .medusa/server && npm start";
  const isForDevelopment = scriptOf(manifest, "start:prod") !== null && needsDevelopment(whole, script);
  return `${program} ${isForDevelopment ? "run start:prod" : "start"}`;
}

/** The script by its text where not all of it is run; without node_modules, the package manager alone finds packages. */
function startOf(
  sources: Sources,
  manifest: PackageJson,
  { packageManager, plugAndPlay }: NodeBuild,
  whole: PackageJson,
): string | null {
  const program = programOf(packageManager);
  const command = scriptCommand(manifest, program, whole);
  const isWhole = isDeepStrictEqual(manifest.scripts, readPackageJson(sources)?.scripts);
  return isWhole || plugAndPlay || command !== `${program} start` ? command : scriptOf(manifest, "start");
}

const plainNode = /^(?:[A-Z_]+=[\w./:-]*\s+)*node(?:\s+[\w./:=@,+-]+)+$/;
const plainName = /^(?:@[\w.-]+\/)?[\w.-]+$/;
const plainVersion = /^[\w.+-]+$/;

/**
 * A start script that is Node and its arguments is run without the package manager, which takes a quarter of a second and 50 MB
 * for it. What apps read of a package manager's variables is there all the same.
 */
function directStart(
  sources: Sources,
  manifest: PackageJson,
  { packageManager, plugAndPlay, folder, within }: NodeBuild,
): { command: string; variables: string[] } | null {
  const { name = "", version = "" } = manifest;
  const command =
    scriptCommand(manifest, "npm", manifest) === "npm start" && scriptOf(manifest, "start")?.trim();
  const isSpecial =
    packageManager === "bun" ||
    plugAndPlay ||
    folder !== null ||
    within !== null ||
    manifest.config !== undefined ||
    scriptsOf(manifest, ["prestart", "poststart"]).length > 0 ||
    /node-options|script-shell/i.test(textOf(sources, ".npmrc") + textOf(sources, ".yarnrc.yml"));
  if (typeof command !== "string" || !plainNode.test(command) || isSpecial) return null;
  if (typeof name !== "string" || typeof version !== "string") return null;
  if ((name !== "" && !plainName.test(name)) || (version !== "" && !plainVersion.test(version))) return null;
  const variables = [
    "npm_lifecycle_event=start",
    ...(name === "" ? [] : [`npm_package_name=${name}`]),
    ...(version === "" ? [] : [`npm_package_version=${version}`]),
    "PATH=/app/node_modules/.bin:$PATH",
  ];
  return { command, variables };
}

export function nodeBuild(sources: Sources, manifest: PackageJson, overrides: Overrides): NodeBuild {
  const { root, folder } = sources.workspace ?? { root: sources, folder: null };
  const installed = folder === null ? manifest : (readPackageJson(root) ?? {});
  const major = nodeMajor(
    { files: sources.files, texts: new Map([...root.texts, ...sources.texts]) },
    askedNode(manifest) ?? askedNode(installed),
  );
  const within = folder === null ? placeOf(sources).within : null;
  const packageManager = packageManagerOf(root, installed);
  const yarnFile = yarnFileOf(root, packageManager);
  const release = releaseOf(root, packageManager, installed);
  const locks = locksOf(root, packageManager);
  // Of pnpm's, the file may also be there for settings only.
  const isWorkspace =
    isFilled(installed.workspaces) ||
    stringsIn(parseYaml(textOf(root, "pnpm-workspace.yaml"))?.["packages"]).length > 0;
  // Yarn 2 and later leave out the second.
  const after = packageManager === "berry" ? ["postinstall"] : ["postinstall", "prepare"];
  const ownScripts = leavesScriptsOut(root) ? [] : scriptsOf(installed, after);
  const needsSource =
    isWorkspace ||
    within !== null ||
    yarnFile !== null ||
    installNeedsSource(root, installed) ||
    (ownScripts.length > 0 && major < leastNpmPkg);
  return {
    major,
    folder,
    within,
    packageManager,
    release: yarnFile === null ? release : null,
    yarnFile,
    yarnFromNpm:
      programOf(packageManager) === "yarn" &&
      !namedBy(installed).version.startsWith("2.") &&
      !allows(release?.replace("yarn@", "") ?? "1", "2"),
    manifests: [
      "package.json",
      ...locks,
      ...present(root, [".npmrc", "pnpm-workspace.yaml", ".yarnrc", ".yarnrc.yml", "bunfig.toml"]),
    ],
    needsSource,
    ownScripts: needsSource ? [] : ownScripts,
    plugAndPlay: packageManager === "berry" && usesPlugAndPlay(root),
    locked: locks.length > 0,
    bun:
      packageManager === "bun" || runsBun(sources, manifest, overrides) ? bunRelease(root, installed) : null,
    hasDependencies:
      isWorkspace ||
      isFilled(manifest.dependencies) ||
      isFilled(manifest.devDependencies) ||
      // It may install the apps of its folders.
      ownScripts.length > 0,
    runsNoScripts: packageManager === "npm" && lockRunsNoScripts(root, installed),
    approvesNoScripts: approvesNoScripts(root, packageManager, installed),
    hasDevDependencies: isWorkspace || isFilled(manifest.devDependencies),
    isWorkspace,
    isOfWebpack4:
      major >= firstOpenSsl3 &&
      [manifest, ...builtBelow(sources, manifest, overrides)].some((one) =>
        Object.entries(ofWebpack4).some(([name, first]) => isBelow(one, name, first)),
      ),
    environment: [
      ...frameworkEnvironment([manifest, installed], lockOf(root)),
      ...(runsPuppeteer(manifest) ? [puppeteerEnvironment] : []),
    ],
    generateCommand: generatePrisma(sources, manifest, packageManager, overrides),
    libraries: usesPrisma(root, manifest) ? ["openssl"] : [],
    runsBrowser: runsPuppeteer(manifest),
    // VitePress asks Git when a page was last changed.
    installPackages:
      [manifest, installed].some(takesFromGit) || dependsOn(manifest, "vitepress") ? gitPackages : [],
    needed: neededBuilds(sources, packageManager, installed, overrides),
    compiled: dependsOn(manifest, "next") ? [".next/cache/turbopack", ".next/cache/webpack"] : [],
    buildCommand: withAdapter(
      manifest,
      overrides.buildCommand ?? buildScript(sources, manifest, packageManager, installed),
    ),
    afterBuild: afterBuildOf(manifest),
  };
}

const usesTurborepo = ({ workspace }: Sources, installed: PackageJson): boolean =>
  workspace?.root.files.has("turbo.json") === true && dependsOn(installed, "turbo");

const isBelow = ({ dependencies, devDependencies }: PackageJson, name: string, major: number): boolean => {
  const range = { ...dependencies, ...devDependencies }[name];
  return typeof range === "string" && allows(range, `<${major}`) && !allows(range, `>=${major}`);
};

/** It hides no variables from the build, and knows no option for that. */
const isTurborepo1 = (manifest: PackageJson): boolean => isBelow(manifest, "turbo", 2);

/** The first Node with it. */
const firstOpenSsl3 = 17;
/** The first major version that has a newer one. */
const ofWebpack4: Record<string, number> = {
  webpack: 5,
  "@rails/webpacker": 6,
  "@vue/cli-service": 5,
  "react-scripts": 5,
};

/** The apps in folders that the build enters, such as `client` of `npm run build --prefix client`. */
function builtBelow(sources: Sources, manifest: PackageJson, { buildCommand }: Overrides): PackageJson[] {
  const command = buildCommand ?? `npm run ${buildScriptOf(manifest) ?? ""}`;
  const entered = scriptsBehind(manifest, command).flatMap((text) => [
    ...text.matchAll(/(?:\s(?:--prefix|--cwd|-C)[ =]|\bcd )(?:\.\/)?([\w.-]{1,100})/g),
  ]);
  return entered.flatMap(
    ([, folder = ""]) => parsePackageJson(textOf(sources, `${folder}/package.json`)) ?? [],
  );
}

/** The owner's own command, and Turborepo, say themselves what is built. */
const neededBuilds = (
  sources: Sources,
  packageManager: PackageManager,
  installed: PackageJson,
  { buildCommand }: Overrides,
): NodeBuild["needed"] =>
  buildCommand !== null || usesTurborepo(sources, installed)
    ? []
    : (sources.workspace?.needed ?? []).map(({ folder, script }) => ({
        folder,
        command: `${programOf(packageManager)} run ${script}`,
      }));

/** Turborepo also builds the packages that an app needs, as the folder it is run in says. */
function buildScript(
  sources: Sources,
  manifest: PackageJson,
  packageManager: PackageManager,
  installed: PackageJson,
): string | null {
  const script = buildScriptOf(manifest);
  if (script === null)
    return dependsOn(manifest, "expo") ? `${executes[packageManager]} expo export --platform web` : null;
  return usesTurborepo(sources, installed)
    ? `/app/node_modules/.bin/turbo run build${isTurborepo1(installed) ? "" : " --env-mode=loose"}`
    : `${programOf(packageManager)} run ${script}`;
}

/** By this, adapter-auto of SvelteKit's own template takes its adapter for a server that Node starts. */
const withAdapter = (manifest: PackageJson, command: string | null): string | null =>
  command !== null && dependsOn(manifest, "@sveltejs/adapter-auto")
    ? `export GCP_BUILDPACKS=1; ${command}`
    : command;

/** Whatever installs its packages. */
const runsBun = (sources: Sources, manifest: PackageJson, overrides: Overrides): boolean =>
  [
    overrides.buildCommand ?? scriptOf(manifest, "build"),
    overrides.startCommand ?? procfileWeb(sources) ?? scriptOf(manifest, "start"),
  ].some((command) => command !== null && /(?:^|[\s;&|])bunx?\s/.test(command));

const usesPlugAndPlay = (sources: Sources): boolean =>
  sources.files.has(".pnp.cjs") || parseYaml(textOf(sources, ".yarnrc.yml"))?.["nodeLinker"] === "pnp";

/** Its engines load OpenSSL, which Node's slim image has not. */
const usesPrisma = (sources: Sources, manifest: PackageJson): boolean =>
  dependsOn(manifest, "prisma") ||
  dependsOn(manifest, "@prisma/client") ||
  lockOf(sources).includes("@prisma/engines");

const lockOf = (sources: Sources): string =>
  ["package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"]
    .map((file) => textOf(sources, file))
    .join("\n");

/** Its own browser lies in the home of whoever installs it, and lacks libraries. Where it is listed for development, it is for tests. */
const runsPuppeteer = ({ dependencies }: PackageJson): boolean =>
  Object.hasOwn(dependencies ?? {}, "puppeteer");
const puppeteerEnvironment = "PUPPETEER_SKIP_DOWNLOAD=true PUPPETEER_EXECUTABLE_PATH=/usr/bin/chromium";

const executes: Record<PackageManager, string> = {
  npm: "npx",
  pnpm: "pnpm exec",
  yarn: "yarn",
  berry: "yarn",
  bun: "bunx",
};

/** Its schema is not there yet when its package is installed, and newer releases do not look for it then. */
function generatePrisma(
  sources: Sources,
  manifest: PackageJson,
  packageManager: PackageManager,
  { buildCommand }: Overrides,
): string | null {
  const scripts = ["postinstall", "prepare", "prebuild", buildScriptOf(manifest) ?? ""];
  const commands = [...scripts.map((name) => scriptOf(manifest, name) ?? ""), buildCommand ?? ""];
  const generates = commands
    .flatMap((command) => scriptsBehind(manifest, command))
    .some((text) => /\bprisma\s+generate\b/.test(text));
  const hasSchema =
    isFilled(manifest.prisma) ||
    present(sources, ["prisma/schema.prisma", "schema.prisma", "prisma/schema/"]).length > 0 ||
    namesPrismaSchema(sources);
  if (generates || !hasSchema || !dependsOn(manifest, "prisma")) return null;
  // It makes code and connects to nothing, but may read the address.
  return `DATABASE_URL="\${DATABASE_URL:-postgresql://none}" ${executes[packageManager]} prisma generate`;
}

/** One that is not there is made by the build, as Keystone's is; farther down is not looked at. */
function namesPrismaSchema(sources: Sources): boolean {
  if (!sources.files.has("prisma.config.ts")) return false;
  const named = /\bschema:\s*["'`](?:\.\/)?([^"'`]{1,200})["'`]/.exec(
    textOf(sources, "prisma.config.ts"),
  )?.[1];
  const path = named?.replace(/\/+$/, "") ?? "";
  return (
    named === undefined || path.split("/").length > deepest || present(sources, [path, `${path}/`]).length > 0
  );
}

/** The first Node whose npm has the command that leaves scripts out. */
const leastNpmPkg = 16;

const lists = ["dependencies", "devDependencies", "optionalDependencies"] as const;

/** A package by the address of its repository, in the forms of https://docs.npmjs.com/cli/configuring-npm/package-json#git-urls-as-dependencies. */
const fromGit =
  /^(?:git(?:\+\w+)?:|git@|(?:github|gitlab|bitbucket|gist):|(?!\.)[\w.-]+\/[\w.-]+(?:#|$)|(?:https?|ssh):\/\/\S+\.git(?:#|$))/;
const takesFromGit = (manifest: PackageJson): boolean =>
  lists.some((list) =>
    Object.values(manifest[list] ?? {}).some(
      (version) => typeof version === "string" && fromGit.test(version),
    ),
  );

/** Also a lock file that does not fit package.json tells nothing: npm adds what it lacks. */
function lockRunsNoScripts(sources: Sources, manifest: PackageJson): boolean {
  const lock = parsePackageJson(textOf(sources, "package-lock.json")) as { packages?: unknown } | null;
  if (sources.files.has("npm-shrinkwrap.json") || typeof lock?.packages !== "object") return false;
  const packages = (lock.packages ?? {}) as Record<string, Record<string, unknown> | null>;
  const own = packages[""] ?? {};
  return (
    lists.every((list) => isDeepStrictEqual(own[list] ?? {}, manifest[list] ?? {})) &&
    Object.values(packages).every((one) => one?.["hasInstallScript"] !== true && one?.["link"] !== true)
  );
}

const leavesScriptsOut = (sources: Sources): boolean =>
  /^[ \t]*ignore-scripts[ \t]*=[ \t]*"?true/m.test(textOf(sources, ".npmrc"));

const scriptsOf = (manifest: PackageJson, names: string[]): string[] =>
  names.filter((name) => scriptOf(manifest, name) !== null);

/** What package managers, and install scripts of packages, read beside the manifests. */
const readByInstall =
  /^(?:\.yarn\/|patches\/|binding\.gyp|\.pnpmfile\.[cm]js|\.puppeteerrc(?:\.\w+)?|puppeteer\.config\.\w+)$/;

function installNeedsSource(sources: Sources, manifest: PackageJson): boolean {
  const wanted = [manifest.dependencies, manifest.devDependencies].flatMap((list) =>
    Object.values(list ?? {}),
  );
  return (
    [...sources.files].some((file) => readByInstall.test(file)) ||
    ["package.json", "pnpm-workspace.yaml"].some((file) =>
      textOf(sources, file).includes("patchedDependencies"),
    ) ||
    scriptsOf(manifest, ["preinstall", "install"]).length > 0 ||
    wanted.some(
      (version) => typeof version === "string" && /^(?:file|link|portal|patch):|^\.{0,2}\//.test(version),
    )
  );
}

const entries = ["server.js", "index.js", "app.js", "src/index.js"];

/** A file that package.json names. */
function pathIn(value: unknown): string | null {
  const path = typeof value === "string" ? value.replace(/^\.\//, "") : "";
  return /^[\w.][\w./-]*$/.test(path) ? path : null;
}

/** `main` may also be what the build makes. */
export function entryCommand(sources: Sources, manifest: PackageJson): string | null {
  const path = pathIn(manifest.main);
  const named = path !== null && (path.includes("/") || sources.files.has(path)) ? path : null;
  const isBun = packageManagerOf(sources.workspace?.root ?? sources, manifest) === "bun";
  const module = pathIn(manifest.module);
  // What `bun init` names so is the program; a library's is what its build makes.
  if (isBun && named === null && module !== null && sources.files.has(module)) return `bun ${module}`;
  const usual = present(sources, isBun ? entries.flatMap((one) => [one.replace(/js$/, "ts"), one]) : entries);
  const entry = named ?? usual.find((one) => !isWorkerCode(sources, one));
  return entry === undefined ? null : `${isBun ? "bun" : "node"} ${entry}`;
}

const isFilled = (list: unknown): boolean => Object.keys(list ?? {}).length > 0;

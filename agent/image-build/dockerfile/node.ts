import type { NodeBuild, NodePlan } from "../detect/node.ts";
import { programOf, type PackageManager } from "../detect/package-manager.ts";
import { lockNote } from "../build-failure.ts";
import {
  appFolder,
  buildStep,
  cache,
  cCompilers,
  compilersOnDemand,
  copyManifests,
  handedOver,
  installAndCopy,
  installDebian,
  installStep,
  runs,
  sourceFolder,
  starts,
  unlessGiven,
  write,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

type Tool = {
  locked: string;
  unfit?: string;
  loose: string;
  prune: string | null;
  cache: string;
  env: string;
};
const corepackHome = "/opt/corepack";
/**
 * The lock file goes before what package.json names, which Corepack would refuse to leave aside. Signatures, which mirrors of the
 * registry have not and an old Corepack has no keys for, are asked for by no other install either.
 */
const corepack = `COREPACK_HOME=${corepackHome} COREPACK_ENABLE_DOWNLOAD_PROMPT=0 COREPACK_ENABLE_STRICT=0 COREPACK_INTEGRITY_KEYS=0`;

/**
 * A lock file that lacks what package.json or another platform asks for is npm's own doing as often as its owner's, who does not see
 * it: `npm install` still takes every version that the file has.
 */
const completeLock = ` --logs-dir=/tmp/npm || { grep -qrs 'can only install packages when your package.json' /tmp/npm || exit 1; echo '${lockNote}' >&2; npm install; }`;

/** Yarn 2 and 3 have it by a plug-in only. It is done when it runs the app's own scripts, which may need what is gone by then. */
const berryPrune =
  "if yarn workspaces focus --help > /dev/null 2>&1; then yarn workspaces focus --all --production || echo 'Scripts of the app itself were not run again.'; fi";

/** `prune` leaves out what is for development, and runs no script, such as husky's, that needs it. */
export const tools: Record<PackageManager, Tool> = {
  npm: {
    locked: "npm ci",
    unfit: completeLock,
    loose: "npm install",
    prune: "npm prune --omit=dev --ignore-scripts",
    cache: "/root/.npm",
    env: "NPM_CONFIG_UPDATE_NOTIFIER=false NPM_CONFIG_FUND=false NPM_CONFIG_AUDIT=false",
  },
  pnpm: {
    locked: "pnpm install --frozen-lockfile",
    loose: "pnpm install",
    prune: "NPM_CONFIG_IGNORE_SCRIPTS=true pnpm prune --prod",
    cache: "/root/.local/share/pnpm/store",
    env: `${corepack} NPM_CONFIG_CONFIRM_MODULES_PURGE=false PNPM_CONFIG_VERIFY_DEPS_BEFORE_RUN=false PNPM_CONFIG_PM_ON_FAIL=ignore`,
  },
  yarn: {
    locked: "yarn install --frozen-lockfile",
    loose: "yarn install",
    prune: "yarn install --production --ignore-scripts --prefer-offline",
    cache: "/usr/local/share/.cache/yarn",
    env: corepack,
  },
  berry: {
    locked: "yarn install --immutable",
    loose: "yarn install",
    prune: berryPrune,
    cache: "/root/.yarn/berry/cache",
    env: `${corepack} YARN_ENABLE_TELEMETRY=0 YARN_ENABLE_GLOBAL_CACHE=true YARN_NODE_LINKER=node-modules`,
  },
  bun: {
    locked: "bun install --frozen-lockfile",
    loose: "bun install",
    prune: null,
    cache: "/root/.bun/install/cache",
    env: "DO_NOT_TRACK=1",
  },
};
/** By pnpm 10 and by 11, to which it is no error, as it is to skip any. */
const runEveryScript =
  "NPM_CONFIG_DANGEROUSLY_ALLOW_ALL_BUILDS=true PNPM_CONFIG_DANGEROUSLY_ALLOW_ALL_BUILDS=true";
const npmRegistry = "COREPACK_NPM_REGISTRY=https://registry.npmjs.org";
const bunHome = "/opt/bun";
const pnpmWorkspacePrune = "CI=true pnpm install --prod --frozen-lockfile --ignore-scripts --prefer-offline";
/** The cache is part of the app. */
const plugAndPlay = `${corepack} YARN_ENABLE_TELEMETRY=0 YARN_ENABLE_GLOBAL_CACHE=false YARN_NODE_LINKER=pnp`;

const usesCorepack = ({ packageManager, yarnFile }: NodeBuild): boolean =>
  packageManager !== "npm" && packageManager !== "bun" && yarnFile === null;

/** In place of the image's Yarn or Corepack's. */
const useYarnFile = ({ yarnFile }: NodeBuild): string[] =>
  yarnFile === null
    ? []
    : [
        runs(
          `rm -f ${yarnProgram} && ${write(["#!/bin/sh", `exec node /app/${yarnFile} "$@"`], yarnProgram)} && chmod +x ${yarnProgram}`,
        ),
      ];
const yarnProgram = "/usr/local/bin/yarn";

const serverHome = "/opt/server";
const installBeside = (folder: string, name: string): string =>
  runs(`npm install --global --prefix ${folder} '${name}'`);

const bunPath = ({ bun }: NodeBuild): string[] => (bun === null ? [] : [`ENV PATH=${bunHome}/bin:$PATH`]);

function toolOf(plan: NodeBuild): Tool {
  const tool = tools[plan.packageManager];
  const env = plan.plugAndPlay ? plugAndPlay : tool.env;
  return {
    ...tool,
    // Pruning the root of a workspace empties the other packages.
    ...(plan.packageManager === "pnpm" && plan.isWorkspace && { prune: pnpmWorkspacePrune }),
    env: plan.yarnFromNpm ? `${env} ${npmRegistry}` : env,
  };
}

/**
 * From Node 25 on, the image has no Corepack; Yarn is in the way of its package. That of Node 16, 17 and 19 cannot be asked for a
 * release: 0.20 is the first that can, and the last for Node 16.
 */
const enableCorepack =
  "case $(node --version) in v1[679].*) npm install --global --force corepack@0.20.0 ;; esac; " +
  "corepack enable || { npm install --global --force corepack && corepack enable; }";

/** A build's limit is none of Node's own group: it would let garbage grow to the size of the host, and be killed. */
function nodeOptions({ isOfWebpack4 }: NodeBuild, { memoryMb, plain, secret }: BuildVariables): string {
  const options = [
    ...(memoryMb === undefined ? [] : [`--max-old-space-size=${Math.floor((memoryMb * 7) / 8)}`]),
    // It asks for a digest that OpenSSL 3 has nowhere else.
    ...(isOfWebpack4 ? ["--openssl-legacy-provider"] : []),
  ].join(" ");
  return options === "" || [...plain, ...secret].includes("NODE_OPTIONS") ? "" : ` NODE_OPTIONS="${options}"`;
}

/** The official image has those that packages are compiled with; node-gyp of any release takes them for downloaded. */
const headers =
  "if [ -d /usr/local/include/node ]; then folder=/root/.cache/node-gyp/$(node -p process.versions.node) && " +
  "mkdir -p $folder && ln -s /usr/local/include $folder/include && echo 99 > $folder/installVersion; fi";

const copyAll = `COPY ${sourceFolder}/ ./`;
const nodeFolder = ({ folder, within }: NodeBuild): string => appFolder({ within: folder ?? within });

/** By it, commands of the owner's and of a Procfile find the programs of the app's packages; those of the image go first. */
function programPath(plan: NodeBuild): string[] {
  const folders = [...new Set([nodeFolder(plan), appFolder(plan)])];
  return plan.plugAndPlay || !plan.hasDependencies
    ? []
    : [`PATH=$PATH:${folders.map((folder) => `${folder}/node_modules/.bin`).join(":")}`];
}

/** Containers let no process make the namespaces of Chromium's sandbox, and have little shared memory. */
const chromiumFlags = write(
  ['export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox --disable-dev-shm-usage"'],
  "/etc/chromium.d/container",
);
/** First in each stage, so that it is one step for both. */
const installBrowser = ({ runsBrowser }: NodeBuild): string[] =>
  runsBrowser ? [...installDebian(["chromium"]), runs(chromiumFlags)] : [];

/** The same for every app that needs it. */
export const nodeShared = [runs(`${compilersOnDemand(["python3", ...cCompilers])} && ${headers}`)];
export const bunShared = (release: string): string[] => [installBeside(bunHome, release)];
export const corepackShared = (release: string | null, isYarnFromNpm: boolean): string[] => [
  runs(enableCorepack),
  ...(release === null
    ? []
    : [
        runs(
          `${isYarnFromNpm ? `${corepack} ${npmRegistry}` : corepack} corepack install --global '${release}'`,
        ),
      ]),
];

/** What Node, from 22.1 on, keeps of npm compiled, by an install of one empty package, offline. Where that fails, installs go without. */
export const npmCode = "/opt/npm-code";
export const npmShared = [
  runs(
    `mkdir -p ${npmCode} /tmp/npm/empty /tmp/npm/app && cd /tmp/npm/app && export NODE_COMPILE_CACHE=${npmCode} ${tools.npm.env} && ` +
      `echo '{"name":"empty","version":"1.0.0"}' > ../empty/package.json && npm pack ../empty && npm install ./empty-1.0.0.tgz && npm ci; rm -rf /tmp/npm`,
  ),
];

/** Of what runs by Node in a build. */
export function buildEnvironment(plan: NodeBuild, variables: BuildVariables): string[] {
  const scripts = plan.approvesNoScripts ? [runEveryScript] : [];
  const environment = [toolOf(plan).env, ...scripts, ...plan.environment, ...programPath(plan)].join(" ");
  const text = `${unlessGiven(environment, variables)}${nodeOptions(plan, variables)}`.trim();
  return text === "" ? [] : [`ENV ${text}`];
}

/** A stage in which the dependencies are installed and the build script has run, in /app. */
export function nodeBuildStage(
  plan: NodeBuild,
  stage: string,
  variables: BuildVariables,
  images: BaseImages,
  copySource: string | null = copyAll,
  base = [`FROM ${images.node} AS ${stage}`],
): string[] {
  const tool = toolOf(plan);
  const mounts = plan.plugAndPlay ? [] : [cache(variables, plan.packageManager, tool.cache)];
  const compiled = plan.compiled.map((folder) =>
    cache(variables, folder.slice(folder.lastIndexOf("/") + 1), `${nodeFolder(plan)}/${folder}`),
  );
  const command = plan.installCommand ?? (plan.locked ? `${tool.locked}${tool.unfit ?? ""}` : tool.loose);
  const leftOut = plan.ownScripts.map((name) => `scripts.${name}`).join(" ");
  const install = installStep(
    leftOut === "" ? command : `npm pkg delete ${leftOut} && ${command}`,
    variables,
    mounts,
  );
  const runOwn = plan.ownScripts.map((name) => `${programOf(plan.packageManager)} run ${name}`).join(" && ");
  // Without an install, the package manager itself is still to be fetched.
  const fetch = usesCorepack(plan) ? [runs(`${programOf(plan.packageManager)} --version`, mounts)] : [];
  return [
    ...base,
    ...installBrowser(plan),
    ...(plan.hasDependencies ? nodeShared : []),
    ...(plan.bun === null ? [] : bunShared(plan.bun)),
    ...(usesCorepack(plan) ? corepackShared(plan.release, plan.yarnFromNpm) : []),
    ...installDebian([...plan.libraries, ...plan.installPackages]),
    "WORKDIR /app",
    ...buildEnvironment(plan, variables),
    ...useYarnFile(plan),
    ...bunPath(plan),
    ...(copySource === null
      ? [...copyManifests(plan.manifests), ...install]
      : installAndCopy(plan, plan.hasDependencies ? install : fetch, copySource)),
    ...(runOwn === "" ? [] : installStep(runOwn, variables, mounts)),
    ...plan.needed.flatMap(({ folder, command }) => [
      `WORKDIR /app/${folder}`,
      ...buildStep(command, variables),
    ]),
    ...(plan.folder === null ? [] : [`WORKDIR ${nodeFolder(plan)}`]),
    ...buildStep(plan.generateCommand, variables),
    ...buildStep(plan.buildCommand, variables, compiled),
    ...(plan.afterBuild === null ? [] : [runs(plan.afterBuild)]),
  ];
}

/** Nothing is made of the source: the image takes it as it is, beside what its manifests alone ask for. */
const isInstalledOnly = (plan: NodePlan): boolean =>
  plan.hasDependencies &&
  !plan.needsSource &&
  plan.ownScripts.length === 0 &&
  plan.generateCommand === null &&
  plan.buildCommand === null &&
  // Its own state lies beside the source.
  plan.packageManager !== "berry";

const own = `${handedOver}/own`;
const state = `${handedOver}/state`;

/** The app without what was installed: that has a layer of its own, without the state of package managers, which have times. */
const separate =
  `mkdir -p node_modules ${own}/node_modules && ` +
  `find . -mindepth 1 -maxdepth 1 ! -name node_modules -exec cp -a -t ${own} {} + && ` +
  `find node_modules -mindepth 1 -maxdepth 1 -type f -exec mv -t ${own}/node_modules {} +`;

/** Where the configuration says so under a condition only, it may not be there. */
const standalone =
  "mkdir -p public && if [ ! -f .next/standalone/server.js ]; then " +
  "echo 'The build left no .next/standalone/server.js: set startCommand to npm start, which needs none.' >&2; exit 1; fi";

type Folder = [from: string, to: string, stage?: string];
const installed: Folder = ["/app/node_modules", "/app/node_modules"];

/** What of the build is in the image, and where it has lain; a step before that makes it so. */
function takes(plan: NodePlan): { step: string[]; folders: Folder[] } {
  if (isInstalledOnly(plan)) return { step: [], folders: [installed] };
  if (plan.standalone)
    return {
      step: [runs(standalone)],
      folders: [
        ["/app/.next/standalone", "/app"],
        ["/app/.next/static", "/app/.next/static"],
        ["/app/public", "/app/public"],
      ],
    };
  if (plan.isWorkspace || plan.within !== null || plan.plugAndPlay || !plan.hasDependencies)
    return { step: [], folders: [["/app", "/app"]] };
  return {
    step: [runs(separate)],
    folders: [installed, [own, "/app"]],
  };
}

/** What is there for development is left out of what runs. */
const prunes = (plan: NodePlan): boolean =>
  plan.hasDevDependencies &&
  toolOf(plan).prune !== null &&
  !plan.plugAndPlay &&
  !plan.startsByDevelopment &&
  !plan.standalone;

/**
 * It is left out before the build, of what the manifests alone made: as long as they stay the same, nothing is left out, copied and
 * stored anew.
 */
const prunesApart = (plan: NodePlan): boolean =>
  prunes(plan) &&
  plan.hasDependencies &&
  !isInstalledOnly(plan) &&
  !plan.needsSource &&
  // Its own state lies beside the source.
  plan.packageManager !== "berry";

const moveState = `mkdir -p node_modules ${state} && find node_modules -mindepth 1 -maxdepth 1 -type f -exec mv -t ${state} {} +`;

/** With what the build wrote into packages, such as generated code: it changed after the source was copied. */
const separateBuilt =
  `mkdir ${own} && find . -mindepth 1 -maxdepth 1 ! -name node_modules -exec cp -a -t ${own} {} + && ` +
  `find node_modules -name .cache -prune -o -newercc package.json "(" -type f -o -type l ")" -exec cp -a --parents -t ${own} {} +`;

/** The stages that build the app, and what of them is in the image. */
function buildStages(
  plan: NodePlan,
  variables: BuildVariables,
  images: BaseImages,
): { lines: string[]; folders: Folder[] } {
  const tool = toolOf(plan);
  // What package managers read names variables here, too; the install has declared the plain ones.
  const prune = (after = "") =>
    installStep(`${tool.prune}${after}`, { ...variables, plain: [] }, [
      cache(variables, plan.packageManager, tool.cache),
    ]);
  if (prunesApart(plan)) {
    const stage = nodeBuildStage(plan, "install", variables, images);
    const at = stage.indexOf(copyAll);
    return {
      lines: [
        ...stage.slice(0, at),
        "FROM install AS modules",
        ...prune(` && ${moveState}`),
        "FROM install AS build",
        // Not at once with the build, whose memory it would take.
        `COPY --from=modules ${state} ${state}`,
        ...stage.slice(at),
        runs(separateBuilt),
      ],
      folders: [
        ["/app/node_modules", "/app/node_modules", "modules"],
        [state, "/app/node_modules", "modules"],
        [own, "/app"],
      ],
    };
  }
  const { step, folders } = takes(plan);
  return {
    lines: [
      ...nodeBuildStage(plan, "build", variables, images, isInstalledOnly(plan) ? null : undefined),
      ...(prunes(plan) ? [...(plan.folder === null ? [] : ["WORKDIR /app"]), ...prune()] : []),
      ...step,
    ],
    folders,
  };
}

function runEnvironment(plan: NodePlan, tools: string[]): string {
  const own = plan.startVariables.length > 0 ? plan.startVariables : programPath(plan);
  return `ENV ${["NODE_ENV=production PORT=3000", ...tools, ...plan.environment, ...own].join(" ")}`;
}

/**
 * One stage, so that nothing is copied from one to another: nothing of the install but packages is left in it. Not with plain
 * build variables, which an image's history would show.
 */
const isInstalledInPlace = (plan: NodePlan, variables: BuildVariables): boolean =>
  isInstalledOnly(plan) &&
  plan.runsNoScripts &&
  plan.installPackages.length === 0 &&
  plan.installCommand === undefined &&
  plan.bun === null &&
  plan.server === null &&
  variables.plain.length === 0;

function installInPlace(plan: NodePlan, variables: BuildVariables): string[] {
  const tool = toolOf(plan);
  const environment =
    `${unlessGiven([tool.env, ...(prunes(plan) ? ["NPM_CONFIG_OMIT=dev"] : [])].join(" "), variables)}${nodeOptions(plan, variables)}`.trim();
  const own = "rm -rf /tmp/npm && chown -R node:node /app";
  const command = `export ${environment}; { ${tool.locked}${tool.unfit ?? ""}; } && ${own}`;
  return [
    "WORKDIR /app",
    ...copyManifests(plan.manifests),
    ...installStep(command, variables, [cache(variables, plan.packageManager, tool.cache)]),
    `COPY --chown=node:node ${sourceFolder}/ ./`,
  ];
}

const emptyEnvFiles = ({ envFiles }: NodePlan): string[] =>
  envFiles.length === 0 ? [] : [runs(`touch ${envFiles.join(" ")}`)];

export function nodeDockerfile(plan: NodePlan, variables: BuildVariables, images: BaseImages): string[] {
  const tool = toolOf(plan);
  if (isInstalledInPlace(plan, variables))
    return [
      `FROM ${images.node}`,
      ...installBrowser(plan),
      ...installDebian(plan.libraries),
      ...installInPlace(plan, variables),
      runEnvironment(plan, []),
      ...emptyEnvFiles(plan),
      "USER node",
      starts(plan.startCommand),
    ];
  const { lines, folders } = buildStages(plan, variables, images);
  return [
    ...lines,
    `FROM ${images.node}`,
    ...installBrowser(plan),
    ...installDebian(plan.libraries),
    runEnvironment(plan, usesCorepack(plan) ? [tool.env] : []),
    // The release that installed the dependencies: nothing is downloaded when the app starts.
    ...(usesCorepack(plan)
      ? [runs(enableCorepack), `COPY --from=build ${corepackHome} ${corepackHome}`]
      : []),
    ...useYarnFile(plan),
    ...(plan.bun === null ? [] : [`COPY --from=build ${bunHome} ${bunHome}`, ...bunPath(plan)]),
    ...(plan.server === null
      ? []
      : [installBeside(serverHome, plan.server), `ENV PATH=${serverHome}/bin:$PATH`]),
    // Before WORKDIR, which would make the folder root's.
    ...folders.map(([from, to, stage = "build"]) => `COPY --from=${stage} --chown=node:node ${from} ${to}`),
    ...(isInstalledOnly(plan) ? [`COPY --chown=node:node ${sourceFolder}/ /app/`] : []),
    `WORKDIR ${nodeFolder(plan)}`,
    ...emptyEnvFiles(plan),
    "USER node",
    starts(plan.startCommand),
  ];
}

/** Assets for an app of another language: what only Node needs stays behind. A browser is for its start, not for assets. */
export const assetsStage = (
  plan: NodeBuild,
  variables: BuildVariables,
  images: BaseImages,
  copySource?: string,
  base?: string[],
): string[] => [
  ...nodeBuildStage({ ...plan, runsBrowser: false }, "assets", variables, images, copySource, base),
  runs("rm -rf node_modules"),
];

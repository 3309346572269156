import type { Dirent } from "node:fs";
import { lstat, readFile, readdir, realpath } from "node:fs/promises";
import { join, posix, sep } from "node:path";
import type { Duplex } from "node:stream";
import type { EnvEntry, JobArgs } from "../../protocol/agent/jobs.ts";
import type { BuildOptions } from "../../protocol/api/sites.ts";
import { JobError } from "../job.ts";
import { chooseBaseImages } from "./base-image.ts";
import { contextOf, type Context } from "./context.ts";
import { detect } from "./detect/index.ts";
import { isServedAsFiles, type Plan } from "./detect/plan.ts";
import { repositoryOf } from "./detect/repository.ts";
import {
  aptPackages,
  notesBesideDockerfile,
  notesOf,
  procfileRelease,
  type Sources,
} from "./detect/sources.ts";
import { startNotes } from "./detect/start-notes.ts";
import { serverNotes } from "./detect/workspace-apps.ts";
import { toolNotes } from "./detect/tool-notes.ts";
import { workspaceOf } from "./detect/workspace.ts";
import { generateDockerfile } from "./dockerfile/index.ts";
import { commitVariable, sourceFolder } from "./dockerfile/instructions.ts";
import { withSharedBases, type SharedBase } from "./dockerfile/shared.ts";
import { isLeftOut } from "./dockerfile/static.ts";
import { demandKnownFrontend } from "./frontend.ts";
import { namedImages } from "./named-images.ts";
import { readOwn } from "./read-own.ts";
import { readSources } from "./read-sources.ts";
import { caSecretId, trustCa } from "./trust-ca.ts";

export type Steps = {
  /** Its name, as a clean path in the context. */
  dockerfile: { name: string; text: string };
  /** The text that is built, for the log when it is ours. */
  generated: string | null;
  /** What a new version is to run once before it serves. */
  release: string | null;
  /** Its files are served by a server of ours: no program of the repository's runs. */
  isStatic: boolean;
  /** The images of the Dockerfile's stages. */
  bases: string[];
  /** For the log: what the repository says, and nobody heeds. */
  notes: string[];
  buildArgs: Record<string, string>;
  secrets: Map<string, Uint8Array>;
};
/**
 * @property context `failed` is aborted with the reason where it cannot be read, and `done` says that nothing of it will be asked for
 * any more; null: there is none but the Dockerfile
 */
export type Prepared = Steps & {
  context: { send: () => Duplex; failed: AbortSignal; done: () => void } | null;
};

export type Input = Pick<JobArgs<"site.deploy">, "rootDir" | "dockerfilePath" | "buildCommand"> & {
  options?: BuildOptions;
  siteId: string;
  startCommand: string | null;
  releaseCommand?: string | null | undefined;
  env: readonly EnvEntry[];
  /** What a build may use, where that is known. */
  memoryMb?: number;
};

/** The Dockerfile that Docker takes where none is named; a folder may have the second name. */
export const usualDockerfile = (entries: readonly Dirent[]): string | null =>
  (
    entries.find(({ name }) => name === "Dockerfile") ??
    entries.find((entry) => entry.name === "dockerfile" && entry.isFile())
  )?.name ?? null;

/** The repository's own Dockerfile, where it is built by one. */
function ownDockerfile(
  entries: Dirent[],
  { options: { builder } = {}, dockerfilePath }: Input,
): string | null {
  if (builder === "detect") return null;
  const usual = usualDockerfile(entries);
  if (builder === "dockerfile" && dockerfilePath === null && usual === null)
    throw new JobError(
      "builder is dockerfile, but the repository has no Dockerfile at the root of the app: set dockerfilePath to it, or remove builder.",
    );
  return dockerfilePath ?? usual;
}

/** What of the environment reaches the build: plain variables as arguments, secret ones as mounts. */
async function variablesOf(env: readonly EnvEntry[], buildCaFile: string | null) {
  const wanted = env.filter(({ scope }) => scope !== "runtime");
  const plain = wanted.filter(({ secret }) => !secret);
  const secret = wanted.filter((entry) => entry.secret);
  const secrets = new Map(secret.map(({ key, value }) => [`env_${key}`, Buffer.from(value)]));
  if (buildCaFile !== null) secrets.set(caSecretId, await readFile(buildCaFile));
  const buildArgs = Object.fromEntries(plain.map(({ key, value }) => [key, value]));
  return { buildArgs, secrets, plain: Object.keys(buildArgs), secret: secret.map(({ key }) => key) };
}

/**
 * From a fetched repository to what the engine builds. The repository's own Dockerfile wins over detection.
 * `canHave` tells whether the engine has a base image or gets it, and `shared` names the image of what sites share.
 */
export async function prepareBuild(
  folder: string,
  input: Input,
  buildCaFile: string | null,
  canHave: (image: string) => Promise<boolean> = () => Promise.resolve(false),
  shared: (base: SharedBase) => Promise<string | null> = () => Promise.resolve(null),
): Promise<Steps & { context: Context }> {
  const root = await folderInside(folder, input.rootDir);
  const entries = await readdir(root, { withFileTypes: true });
  const names = entries.map(({ name }) => name);
  const { plain, secret, ...variables } = await variablesOf(input.env, buildCaFile);
  const own = ownDockerfile(entries, input);
  if (own !== null) {
    const text = textToBuild(
      await readDockerfile(root, own, input.rootDir),
      variables.buildArgs,
      buildCaFile,
    );
    return {
      ...variables,
      context: await contextOf(root, null, undefined, own),
      dockerfile: { name: posix.normalize(own), text },
      generated: null,
      release: null,
      isStatic: false,
      bases: namedImages(text, variables.buildArgs),
      notes: [...notesBesideDockerfile(new Set(names)), ...settingsBesideDockerfile(input)],
    };
  }
  const sources = await sourcesOf(folder, root, input.rootDir);
  const release = procfileRelease(sources);
  const plan = detect(sources, { ...input, ...input.options });
  const { images, notes } = await chooseBaseImages(plan, canHave);
  const text = generateDockerfile(
    plan,
    {
      plain,
      secret,
      cacheId: `${input.siteId}-packages`,
      memoryMb: input.memoryMb,
      readsCommit: [input.buildCommand, ...sources.texts.values()].some((one) =>
        one?.includes(commitVariable),
      ),
    },
    images,
    [
      ...notes,
      ...notesOf(sources),
      ...toolNotes(sources, plan),
      ...startNotes(sources, plan),
      ...serverNotes(plan),
      ...notesOfSettings(input, plan),
      ...notesOfRules(plan),
    ],
    aptPackages(sources),
  );
  const built = await withSharedBases(text, shared);
  return {
    ...variables,
    context: await contextOf(
      isBuiltWithRepository(plan) ? folder : root,
      sourceFolder,
      plan.kind === "static" ? (name) => isLeftOut(name, plan.folder) : undefined,
    ),
    dockerfile: { name: "Dockerfile", text: textToBuild(built, variables.buildArgs, buildCaFile) },
    generated: text,
    release,
    isStatic: isServedAsFiles(plan),
    bases: namedImages(text, {}),
    notes: [],
  };
}

const notesOfRules = (plan: Plan): string[] =>
  plan.kind === "static" || plan.kind === "site" ? (plan.rules?.notes ?? []) : [];

const notesOfSettings = ({ options = {}, startCommand, buildCommand, dockerfilePath }: Input, plan: Plan) => [
  ...(plan.kind === "static"
    ? unreadOf(
        { buildCommand, installCommand: options.installCommand, languageVersion: options.languageVersion },
        "the files are served as they are. For a build that makes them, set buildCommand and outputDir",
      )
    : []),
  ...(isServedAsFiles(plan)
    ? []
    : unreadOf({ singlePage: options.singlePage }, "a program is started, which answers every path itself")),
  ...(options.outputDir !== undefined && startCommand !== null
    ? ["outputDir is not read, because startCommand starts a program."]
    : []),
  ...(dockerfilePath === null ? [] : ["dockerfilePath is not read, because builder is detect."]),
];

function unreadOf(settings: object, reason: string): string[] {
  const set = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null);
  return set.length === 0 ? [] : [`Not read: ${set.map(([name]) => name).join(" and ")}, because ${reason}.`];
}

function settingsBesideDockerfile({ buildCommand, options }: Input): string[] {
  const { builder: _, ...detected } = options ?? {};
  const unread = [...(buildCommand === null ? [] : ["buildCommand"]), ...Object.keys(detected)];
  if (unread.length === 0) return [];
  return [
    `These settings are not read, because the app is built by its Dockerfile: ${unread.join(", ")}. To use them, set builder to detect.`,
  ];
}

const isBuiltWithRepository = (plan: Plan): boolean =>
  ("within" in plan && plan.within !== null) || ("folder" in plan && plan.folder !== null);

/** What detection looks at: the app, and what it needs of the repository around it. */
export async function sourcesOf(folder: string, root: string, rootDir: string | null): Promise<Sources> {
  const app = await readSources(root);
  const below = rootDir === null ? "" : posix.normalize(rootDir).replace(/\/$/, "");
  // By way of a link it may lie anywhere.
  if (below === "" || join(await realpath(folder), below) !== root) return app;
  const repository = await readSources(folder);
  return {
    ...app,
    workspace: workspaceOf(app, repository, below),
    repository: repositoryOf(app, repository, below),
  };
}

/** A pasted Dockerfile, beside which there is nothing. */
export async function prepareText(text: string, input: Input, buildCaFile: string | null): Promise<Prepared> {
  const { buildArgs, secrets } = await variablesOf(input.env, buildCaFile);
  const dockerfile = { name: "Dockerfile", text: textToBuild(text, buildArgs, buildCaFile) };
  const bases = namedImages(text, buildArgs);
  const nothing = { context: null, generated: null, release: null, isStatic: false, bases, notes: [] };
  return { buildArgs, secrets, dockerfile, ...nothing };
}

function textToBuild(text: string, buildArgs: Record<string, string>, buildCaFile: string | null): string {
  demandKnownFrontend(text, buildArgs);
  return buildCaFile === null ? text : trustCa(text);
}

/** A folder of the repository; a link that leads out of it is refused. */
export async function folderInside(folder: string, below: string | null): Promise<string> {
  if (below === null) return folder;
  const root = await realpath(folder);
  const found = await realpath(join(root, below)).catch(() => null);
  if (found === null || !found.startsWith(root + sep) || !(await lstat(found)).isDirectory())
    throw new JobError(`The folder ${below} does not exist in the repository: check rootDir.`);
  return found;
}

async function readDockerfile(root: string, path: string, rootDir: string | null): Promise<string> {
  const text = await readOwn(root, path);
  if (text === null)
    throw new JobError(
      rootDir === null
        ? `The file ${path} does not exist in the repository: check dockerfilePath.`
        : `The file ${path} does not exist in ${rootDir}: dockerfilePath is relative to rootDir.`,
    );
  return text;
}

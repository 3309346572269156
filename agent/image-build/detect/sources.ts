import { JobError } from "../../job.ts";
import { parseToml, tableIn } from "./parse.ts";

/**
 * What detection looks at: paths below the root of the app, folders with a slash at the end, and the text of the files
 * that say how it is built. Written by strangers.
 */
export type Sources = {
  files: ReadonlySet<string>;
  texts: ReadonlyMap<string, string>;
  workspace?: Workspace | null;
  repository?: Repository | null;
};
/** What an app below the root of a repository is installed by, and its own folder there. */
export type Workspace = {
  root: Sources;
  folder: string;
  /** The packages of the repository that it depends on and that have a build script, in the order in which they are built. */
  needed: { folder: string; script: string }[];
};
/** The repository around an app that names files of it beyond its own folder: all of it is built with. */
export type Repository = {
  root: Sources;
  folder: string;
  /** Its name, where a workspace of uv's at the root installs it. */
  uvMember: string | null;
};
/** Where an app lies in the repository that is built with it; null where its folder is all that a build sees. */
export type Place = { within: string | null } & OwnInstall;
/** The owner's command, in place of what would install the dependencies. */
export type OwnInstall = { installCommand?: string };
export const placeOf = ({ repository }: Sources): Place => ({ within: repository?.folder ?? null });
export type Overrides = {
  buildCommand: string | null;
  startCommand: string | null;
  installCommand?: string | undefined;
  releaseCommand?: string | null | undefined;
  /** The folder that is served. */
  outputDir?: string | undefined;
  singlePage?: boolean | undefined;
  languageVersion?: string | undefined;
};

/** The folder that the owner has served, where nothing is started. */
export const servedFolder = ({ startCommand, outputDir }: Overrides): string | null =>
  startCommand === null ? (outputDir ?? null) : null;

export const textOf = ({ texts }: Sources, name: string): string => texts.get(name) ?? "";

/** Those of the names that are there, in their order. */
export const present = ({ files }: Sources, names: readonly string[]): string[] =>
  names.filter((name) => files.has(name));

/** The names under which a framework looks for its configuration. */
export const configsOf = (framework: string): string[] =>
  ["js", "mjs", "cjs", "ts", "mts"].map((ending) => `${framework}.config.${ending}`);

const procfileCommand = (sources: Sources, line: RegExp): string | null =>
  line.exec(textOf(sources, "Procfile"))?.[1]?.trim() ?? null;

/** The command of the `web` process of a Procfile. */
export const procfileWeb = (sources: Sources): string | null =>
  procfileCommand(sources, /^web:[ \t]*(\S.*)$/m);

const releaseCharacters = 2000;

/** What a Procfile has run in each new version before it serves. @throws JobError */
export function procfileRelease(sources: Sources): string | null {
  const command = procfileCommand(sources, /^release:[ \t]*(\S.*)$/m);
  if (command !== null && command.length > releaseCharacters)
    throw new JobError(
      `The Procfile's release command is longer than ${releaseCharacters} characters: put it in a script.`,
    );
  return command;
}

/** How other hosts are told what to do. */
const filesOfOthers = [
  ".buildpacks",
  "app.json",
  "bin/post_compile",
  "bin/pre_compile",
  "captain-definition",
  "fly.toml",
  "heroku.yml",
  "netlify.toml",
  "nixpacks.toml",
  "project.toml",
  "railpack.json",
  "railway.json",
  "railway.toml",
  "render.yaml",
  "vercel.json",
];

/** What the repository says, and nobody heeds. */
export function notesOf(sources: Sources): string[] {
  const isExpos = textOf(sources, "app.json").includes('"expo"');
  const found = present(sources, filesOfOthers)
    .filter((file) => file !== "app.json" || !isExpos)
    .join(" and ");
  const processes = [...textOf(sources, "Procfile").matchAll(/^([\w-]{1,60}):[ \t]*\S/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => name !== "web" && name !== "release");
  const unread = aptLines(sources).filter((line) => !aptLine.test(line));
  const locks = present(sources, ["pdm.lock", "uv.lock", "poetry.lock", "requirements.txt", "Pipfile"]);
  const pinned = aptLines(sources).filter((line) => aptLine.test(line) && line.includes("="));
  return [
    ...(found === "" ? [] : [`Not read: ${found}. Commands and variables are the site's settings.`]),
    ...(locks.join() === "pdm.lock"
      ? [
          "Not read: pdm.lock. The newest versions that pyproject.toml allows are installed: for the locked ones, commit what pdm export --prod -o requirements.txt writes.",
        ]
      : []),
    ...(processes.length === 0
      ? []
      : [
          procfileWeb(sources) === null
            ? `The Procfile names ${firstOf(processes)} and no web process, so the start command is detected. Whatever it starts, something must answer on PORT.`
            : `Not run: ${firstOf(processes)} of the Procfile. A site runs its web process; use schedules, or a site of its own that listens on PORT.`,
        ]),
    ...(unread.length === 0 ? [] : [`Not read in the Aptfile: ${firstOf(unread)}. Name Debian packages.`]),
    ...(pinned.length === 0
      ? []
      : [`Versions not heeded in the Aptfile: ${firstOf(pinned)}. Debian's own are installed.`]),
  ];
}

/** The same of a repository that its Dockerfile builds: of files, only their names count. */
export const notesBesideDockerfile = (files: ReadonlySet<string>): string[] => [
  ...(files.has("Procfile")
    ? [
        "The Procfile is not read, because there is a Dockerfile: use the settings startCommand and releaseCommand instead.",
      ]
    : []),
  ...notesOf({ files, texts: new Map() }),
];

/** The first lines of a stranger's file, as much as a line of the log is for. */
export const firstOf = (lines: readonly string[], most = 5, between = ", "): string =>
  lines
    .slice(0, most)
    .map((line) => line.replaceAll(/[^\x20-\x7e]+/g, "?").slice(0, 100))
    .join(between) + (lines.length > most ? " and others" : "");

const aptLines = (sources: Sources): string[] =>
  textOf(sources, "Aptfile")
    .split("\n")
    .map((line) => line.replace(/(?:^|\s)#.*/, "").trim())
    .filter((line) => line !== "");

const aptLine = /^(?!.*\.deb$)([a-z0-9][a-z0-9+.-]{1,80})(?:=[\w.+:~-]{1,80})?$/;

/** Debian's packages that an Aptfile, as of Heroku's buildpack, asks for. The versions that it names are Ubuntu's. */
export const aptPackages = (sources: Sources): string[] =>
  aptLines(sources).flatMap((line) => aptLine.exec(line)?.[1] ?? []);

/** The version that asdf's or mise's file names of a tool, by any of its names, such as 22 or 3.12.4. */
export function toolVersion(sources: Sources, ...names: readonly string[]): string {
  for (const { tool, version } of toolsOf(sources))
    if (names.includes(tool)) return /^v?([\w./-]{1,40})/.exec(version)?.[1] ?? "";
  return "";
}

const mostTools = 1000;

/** What asdf's and mise's files have installed, one version of each. */
export function toolsOf(sources: Sources): { file: string; tool: string; version: string }[] {
  const asdf = textOf(sources, ".tool-versions")
    .split("\n", mostTools)
    .flatMap((line) => {
      const [tool = "", version] = line.replace(/#.*/, "").trim().split(/\s+/);
      return version === undefined ? [] : [{ file: ".tool-versions", tool, version }];
    });
  const mise = ["mise.toml", ".mise.toml"].flatMap((file) =>
    Object.entries(tableIn(parseToml(textOf(sources, file)), "tools") ?? {}).map(([name, asked]) => ({
      file,
      tool: name.replace(/^core:/, ""),
      version: versionIn(asked),
    })),
  );
  return [...asdf, ...mise];
}

/** `node = "22"`, `node = ["22", "20"]` and `node = { version = "22" }`. */
function versionIn(asked: unknown): string {
  const first: unknown = Array.isArray(asked) ? asked[0] : asked;
  const version = tableIn(first)?.["version"] ?? first;
  return typeof version === "string" || typeof version === "number" ? String(version) : "";
}

/** What fetches packages from repositories of their own; no slim image has it. */
export const gitPackages = ["git", "ca-certificates"];

/** Debian packages: `build` are installed where dependencies are compiled, `run` where the app runs. */
export type SystemPackages = { build: string[]; run: string[] };

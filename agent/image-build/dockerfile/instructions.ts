import type { Place, SystemPackages } from "../detect/sources.ts";
import { startLine } from "../../docker/start-line.ts";

/** Base images by role; an operator's mirror may name others. */
export const baseImages = {
  node: "node:24-bookworm-slim",
  caddy: "caddy:2",
  python: "python:3.13-slim-bookworm",
  go: "golang:1-bookworm",
  debian: "debian:bookworm-slim",
  php: "php:8-apache",
  composer: "composer:2",
  ruby: "ruby:3-slim-bookworm",
  rust: "rust:1-bookworm",
  elixir: "elixir:slim",
  deno: "denoland/deno:debian",
  dotnet: "mcr.microsoft.com/dotnet/aspnet:10.0",
  dotnetSdk: "mcr.microsoft.com/dotnet/sdk:10.0",
  jdk: "eclipse-temurin:21-jdk",
  jre: "eclipse-temurin:21-jre",
  maven: "maven:3-eclipse-temurin-21",
  gradle: "gradle:8-jdk21",
};
export type BaseImages = typeof baseImages;

/** Where the source lies in a context whose Dockerfile is ours, so that the Dockerfile itself is never part of the app. */
export const sourceFolder = "source";
/**
 * The folder of what one stage makes for another. Not the root: BuildKit looks at everything beside what is copied, which there is the whole
 * image, a quarter of a second for Node's.
 */
export const handedOver = "/srv";

export type BuildVariables = {
  /** Names of plain build-time variables: handed over as build arguments. */
  plain: readonly string[];
  /** Names of secret ones: mounted into the build step only. */
  secret: readonly string[];
  /** Caches are shared between builds of one tenant, never between tenants. */
  cacheId: string;
  /** What a build may use, where that is known. */
  memoryMb?: number | undefined;
  /** Its steps have the commit, so that each commit's run from there anew; its install has not. */
  readsCommit?: boolean;
};

/** A build finds the deployed commit in it, as a running app does (`docker/specs.ts`). */
export const commitVariable = "BERTH_COMMIT";

/** A JSON-form instruction: the command is one argument of `sh -c`, whatever characters it holds. */
const shell = (command: string): string => JSON.stringify(["sh", "-c", command]);

export const runs = (command: string, mounts: readonly string[] = []): string =>
  ["RUN", ...mounts, shell(command)].join(" ");

export const starts = (command: string): string => `CMD ${shell(startLine(command))}`;

/** A package manager's cache, kept between builds. */
export const cache = ({ cacheId }: BuildVariables, name: string, target: string): string =>
  `--mount=type=cache,id=${cacheId}-${name},target=${target}`;

/** A command of the owner's before another of ours in one step, wherever it changes to and whatever it ends with; see build-failure.ts. */
export const apart = (command: string): string => `(\n${command}\n)`;

/** Each to the folder that it has in the repository. */
export function copyManifests(manifests: readonly string[]): string[] {
  const folders = Map.groupBy(manifests, (file) => file.replace(/[^/]*$/, ""));
  return [...folders].map(
    ([folder, files]) => `COPY ${files.map((file) => `${sourceFolder}/${file}`).join(" ")} ./${folder}`,
  );
}

/** With the newlines at its end, which $(…) takes away where nothing follows them. */
const exported = (name: string): string =>
  `export ${name}="$(cat /run/secrets/env_${name}; echo .)"; ${name}="\${${name}%.}"; `;

/**
 * The owner's build command or the language's, with the build variables. Secret ones are files while the step runs:
 * exported from there, they reach no layer.
 */
export function buildStep(
  command: string | null,
  { plain, secret, readsCommit }: BuildVariables,
  caches: readonly string[] = [],
): string[] {
  if (command === null) return [];
  const mounts = secret.map((name) => `--mount=type=secret,id=env_${name}`);
  const exports = secret.map(exported).join("");
  const names = [...plain, ...(readsCommit ? [commitVariable] : [])];
  return [...names.map((name) => `ARG ${name}`), runs(exports + command, [...caches, ...mounts])];
}

/** A build variable would not go before ENV. */
export const unlessGiven = (env: string, { plain, secret }: BuildVariables): string =>
  env
    .split(" ")
    .filter((one) => ![...plain, ...secret].includes(one.slice(0, one.indexOf("="))))
    .join(" ");

/**
 * An install, with the build variables: a token of a private registry is one, and scripts of packages read others. Not with
 * NODE_ENV, by which Node's would leave out what builds.
 */
export const installStep = (
  command: string,
  { plain, secret, cacheId }: BuildVariables,
  caches: readonly string[],
): string[] =>
  buildStep(
    command,
    { plain: plain.filter(isOfInstall), secret: secret.filter(isOfInstall), cacheId },
    caches,
  );

const isOfInstall = (name: string): boolean => name !== "NODE_ENV";

/** The install before the source is copied, so that it stays cached while the manifests do; after it where it reads more. */
export function installAndCopy(
  { manifests, needsSource, within }: { manifests: readonly string[]; needsSource: boolean } & Place,
  install: readonly string[],
  copySource: string,
): string[] {
  const source = [copySource, ...(within === null ? [] : [`WORKDIR ${appFolder({ within })}`])];
  if (install.length === 0) return source;
  return needsSource ? [...source, ...install] : [...copyManifests(manifests), ...install, ...source];
}

export const appFolder = ({ within }: Place): string => (within === null ? "/app" : `/app/${within}`);

/** A file of these lines. */
export const write = (lines: readonly string[], file: string): string =>
  `printf '%s\\n' ${lines.map((line) => `'${line.replaceAll("'", String.raw`'\''`)}'`).join(" ")} > ${file}`;

const compiler = "/usr/local/bin/compiler";
/** Packages are installed several at a time. Package managers keep what their steps print; the step's own output is the log. */
const callCompiler = [
  "#!/bin/sh",
  "program=/usr/bin/${0##*/}",
  '[ -e $program ] || echo "Compiling $PWD from source, as it brings no binary for this platform and this version of its language. Compilers are installed first, and both may take minutes: a release that brings one is installed at once." 2> /dev/null > /proc/1/fd/2',
  'install="apt-get update && apt-get install --yes --no-install-recommends build-essential python3-setuptools"',
  'flock $0 sh -c "[ -e $program ] || { $install; }" >&2 && exec $program "$@"',
];

/**
 * What compiles packages is not in the image, and seldom needed: that a package comes compiled for its platform, no lock file
 * tells. So these programs install it the first time that one of them is called.
 */
export const compilersOnDemand = (programs: readonly string[]): string =>
  `${write(callCompiler, compiler)} && chmod +x ${compiler} && for name in ${programs.join(" ")}; do ln -s ${compiler} /usr/local/bin/$name; done`;
export const cCompilers = ["cc", "gcc", "c++", "g++", "make"];

export const installDebian = (names: SystemPackages["build"]): string[] =>
  names.length === 0
    ? []
    : [
        runs(
          `apt-get update && apt-get install --yes --no-install-recommends ${names.join(" ")} && rm -rf /var/lib/apt/lists/*`,
        ),
      ];

/** The source, with what Node made of it where a package.json builds assets. */
export const copySource = (plan: { assets: object | null }): string =>
  plan.assets === null ? `COPY ${sourceFolder}/ ./` : "COPY --from=assets /app/ ./";

/** No image but Node's has a user for apps. */
export const appUser = "1000:1000";

import { isErrorLine } from "../../protocol/error-line.ts";
import type { BuildFailed } from "../docker/buildkit.ts";
import { telling } from "../docker/telling-lines.ts";

/** What BuildKit says of a step that failed, in Docker 20.10 and since. */
const ofStep = [
  /^executor failed running \[(?<command>.*)\]: exit code: (?<code>\d+)$/,
  /process "(?<command>.*)" did not complete successfully: exit code: (?<code>\d+)$/,
];
/** What stands before the owner's or the language's command in a step of ours; see buildStep, installInPlace and withNpmCode. */
const ours =
  /^(?:\/bin\/)?sh -c (?:export \w+=\\?"\$\(cat \/run\/secrets\/env_\w+; echo \.\)\\?"; \w+=\\?"\$\{\w+%\.\}\\?"; |export (?:NODE_COMPILE_CACHE|NPM_CONFIG_UPDATE_NOTIFIER)=[^;]*; )*(?:\{ (?=npm ci ))?/;

/** What follows the owner's or the language's command in a step of ours. */
const fallback = / (?:--logs-dir=\/tmp\/npm )?\|\| \{ grep .*$/;
/** For the log of a build that goes on without its lock file. */
export const lockNote =
  "package-lock.json does not match package.json, so npm install is run instead of npm ci: packages that the file lacks may have a different version in each build. Run npm install and commit package-lock.json.";

/** What steps of ours say, to which their script adds nothing. */
const ownSentence = /^The build left /;

/** The owner's command where another of ours follows it in one step; see `apart`. Some engines write a line's end as Go does. */
function ownersPart(command: string): string {
  const at = command.lastIndexOf(") && ( for folder in ");
  if (at < 0 || !command.startsWith("(")) return command;
  return command.slice(1, at).replace(/^\\n/, "").replace(/\\n$/, "").trim();
}

/** What a registry was asked for, by its address or by the name of the image. */
const baseImages = [
  /Head "https?:\/\/(?<registry>[^/"]+)\/v2\/(?<name>[^"]{1,300})\/manifests\/(?<tag>[^"]{1,100})": (?<why>.*)$/,
  /(?:failed to resolve source metadata for|failed to create LLB definition:) (?<image>[\w./-]+(?::[\w.-]+)?(?:@\w+:\w+)?): (?<why>.*)$/,
];

/** null where that is not why. */
function pullFailure(message: string): string | null {
  const found = baseImages.map((pattern) => pattern.exec(message)?.groups).find(Boolean);
  if (!found) return null;
  const { registry = "", name = "", tag = "", why = "" } = found;
  const separator = tag.includes(":") ? "@" : ":";
  const image = (found["image"] ?? `${registry}/${name}${separator}${tag}`).replace(
    /^(?:registry-1\.)?docker\.io\/(?:library\/)?/,
    "",
  );
  const advice = /not found|denied|unauthorized|authorization failed/i.test(why)
    ? "check its name and tag, and whether everybody may pull it"
    : "deploy again later, or build on an image that this host can reach";
  return `The image ${image}, which the Dockerfile builds on, could not be pulled (${why}): ${advice}.`;
}

/** What BuildKit says of a COPY that finds nothing, in Docker 20.10 and since. */
const copied = /failed to compute cache key: .*"(?<path>[^"]{1,300})"(?:: not found| not found: not found)$/;

/** null where that is not why. */
function copyFailure(message: string, rootDir: string | null): string | null {
  const path = copied.exec(message)?.groups?.["path"];
  const below =
    rootDir === null
      ? ""
      : ` in ${rootDir}, the folder that it is built from. If it is to be built from the root of the repository, remove rootDir and set dockerfilePath to its path from there. Otherwise`;
  return path === undefined
    ? null
    : `The Dockerfile copies ${path}, which does not exist${below || ":"} create it, remove that line, or check .dockerignore; or set builder to detect to build the repository without its Dockerfile.`;
}

/** What a Dockerfile of ours says where the version of Node that is asked for cannot be had. */
const otherNode = /^# (This host cannot get node:\S+: \S+ is used instead)\.$/m;

/** null where the session, over which the agent sends the files, did not break. */
const interruption = (message: string): string | null =>
  /\brpc error: code = Unavailable desc = /.test(message)
    ? "The build was interrupted, because the host's connection to its Docker engine broke: deploy again."
    : null;

/** Why a build failed, for one who does not see its log; `generated` is the Dockerfile that is ours. */
export function buildFailure(
  { message, lastLines }: BuildFailed,
  memoryMb: number,
  generated: string | null = null,
  rootDir: string | null = null,
): string {
  // SIGKILL is how the kernel ends what uses too much memory; with cgroup v2 BuildKit may see it and say so instead.
  if (/exit code: 137\b|did not complete successfully: cannot allocate memory/.test(message))
    return `The build was killed, most likely because it used more than the ${memoryMb} MB of memory a build has: reduce its memory use.`;
  const step = ofStep.map((pattern) => pattern.exec(message)?.groups).find(Boolean);
  if (!step)
    return (
      pullFailure(message) ??
      (generated === null ? copyFailure(message, rootDir) : null) ??
      interruption(message) ??
      `The build failed: ${message.slice(0, 1000)}. See the deployment's log.`
    );
  const told = lastLines.at(-1) ?? "";
  if (ownSentence.test(told)) return told;
  const command = ownersPart((step["command"] ?? "").replace(ours, "")).replace(fallback, "");
  const shown = command.length > 200 ? `${command.slice(0, 200)}…` : command;
  return [
    `The build failed: "${shown}" exited with code ${step["code"]}.`,
    ...advice(lastLines, memoryMb, otherNode.exec(generated ?? "")?.[1]),
    saidLast(lastLines),
  ].join(" ");
}

/** What to do about failures that many meet, by a line that tells of one. */
const known: [sign: RegExp, advice: (memoryMb: number, otherNode: string | undefined) => string][] = [
  [
    /`npm ci` can only install packages when your package\.json and/,
    // A lock file that lacks packages of other platforms stays as it is.
    () => unfitLock("package-lock.json", "npm", ", if necessary after deleting it and node_modules"),
  ],
  [/\bERR_PNPM_OUTDATED_LOCKFILE\b/, () => unfitLock("pnpm-lock.yaml", "pnpm")],
  [/^error: lockfile had changes, but lockfile is frozen/, () => unfitLock("Bun's lock file", "bun")],
  [/\bYN0028\b|^error Your lockfile needs to be updated\b/, () => unfitLock("yarn.lock", "yarn")],
  [
    /^error .*Failed to replace env in config\b|\bEnvironment variable not found \(|^npm error code E401\b|\bERR_PNPM_FETCH_401\b|\bYN0041\b/,
    () =>
      "The package registry got no valid token: set the variable that .npmrc or .yarnrc.yml reads, with the scope build or both.",
  ],
  [
    /^npm error code ERESOLVE\b/,
    () =>
      "Packages require conflicting versions: correct package.json, or commit a package-lock.json, or an .npmrc with legacy-peer-deps=true.",
  ],
  [
    /^npm error Unsupported URL Type "(?:workspace|catalog):/,
    () =>
      "npm knows no versions that begin with workspace: or catalog: as other package managers do: commit the lock file of your package manager at the workspace root, and set rootDir to the folder of the app.",
  ],
  [
    /\bYour pnpm version is incompatible with\b|The engine "(?:pnpm|yarn)" is incompatible\b/,
    () =>
      'package.json asks for another release of its package manager: name that in "packageManager", or change "engines".',
  ],
  [
    /^npm error code EBADENGINE\b|\bERR_PNPM_UNSUPPORTED_ENGINE\b|The engine "node" is incompatible\b/,
    (_, other) =>
      other === undefined
        ? 'A package asks for another version of Node: name it in .nvmrc or in "engines" of package.json.'
        : `A package requires another version of Node. ${other}: ask the operator for that image, or use versions of the packages that run on this one.`,
  ],
  [
    /\bgyp ERR! (?:configure|build) error\b/,
    () =>
      "A package had to be compiled and could not be: use a version of it that comes compiled for this version of Node, or name the Debian packages that it needs in an Aptfile.",
  ],
  [
    /\bfatal error: [\w./-]+\.h: No such file or directory|\bpg_config executable not found\b/,
    () =>
      "A package had to be compiled with a C header that is missing: name the Debian package that has it in an Aptfile (libpq-dev for PostgreSQL), or use a version that comes compiled.",
  ],
  [
    /\brequires? a different python\b/i,
    () =>
      "A package requires another version of Python: name that in .python-version, or use another version of the package.",
  ],
  [
    /^error: .*(?:Cargo\.lock needs to be updated but|because) --locked was passed/,
    () => "Cargo.lock does not match Cargo.toml: run cargo check, and commit both.",
  ],
  [
    /\bgemfile changed, but the lockfile can't be updated\b|in (?:deployment|frozen) mode after changing\b/,
    () => "Gemfile.lock does not match Gemfile: run bundle install, and commit both.",
  ],
  [
    /\bERR_OSSL_EVP_UNSUPPORTED\b|\berror:0308010C\b/,
    () =>
      "Its webpack is older than the OpenSSL of this Node: use a version with webpack 5, such as react-scripts 5, or set the build variable NODE_OPTIONS to --openssl-legacy-provider.",
  ],
  [
    /JavaScript heap out of memory/,
    (memoryMb) => `Its Node was out of memory, of which a build has ${memoryMb} MB: reduce its memory use.`,
  ],
  [
    // What a shell says of Git alone ends no build.
    /\bCommand failed\b[^:]{0,60}: git\b|\bspawn(?:Sync)? git ENOENT\b/,
    () =>
      "It runs Git, which a build has only if an Aptfile or your Dockerfile installs it, and never with the repository's history: let it read the commit from BERTH_COMMIT instead.",
  ],
  [
    // Of hatch-vcs as well, which uses it.
    /\bsetuptools-scm was unable to detect version\b/,
    () =>
      "The package takes its version from Git's tags, which a build does not have: set the build variable SETUPTOOLS_SCM_PRETEND_VERSION to a version, such as 0.0.0.",
  ],
];
const unfitLock = (file: string, program: string, how = ""): string =>
  `${file} does not match package.json: run ${program} install${how}, and commit both.`;

const advice = (lines: readonly string[], memoryMb: number, other: string | undefined): string[] =>
  known
    .filter(([sign]) => lines.some((line) => sign.test(line)))
    .slice(0, 1)
    .map(([, say]) => say(memoryMb, other));

const mostShown = 15;

/** A linter's or bundler's warnings may follow the error, which then stands before them. */
function saidLast(lines: readonly string[]): string {
  if (lines.length === 0) return "It printed nothing.";
  const told = telling(lines).map((text) => text.trim());
  const last = told.slice(-mostShown);
  const first = last.some(isErrorLine) ? undefined : told.find(isErrorLine);
  const before = first === undefined || first.length > 700 ? "" : `${first} | … | `;
  let shown = "";
  for (const line of last.toReversed()) {
    const longer = shown === "" ? line : `${line} | ${shown}`;
    // None is cut: half a secret is known to nobody.
    if (before.length + longer.length > 1500) break;
    shown = longer;
  }
  return shown === "" ? "See the deployment's log." : `Its last lines: ${before}${shown}`;
}

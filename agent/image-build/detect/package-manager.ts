import { Range, subset, validRange } from "semver";
import { allows } from "./newest-minor.ts";
import type { PackageJson } from "./package-json.ts";
import { parseYaml, tableIn } from "./parse.ts";
import { present, textOf, toolVersion, type Sources } from "./sources.ts";

/** `yarn` is the classic one; `berry` is Yarn 2 and later. */
export type PackageManager = "npm" | "pnpm" | "yarn" | "berry" | "bun";
type Program = Exclude<PackageManager, "berry">;

export const lockFiles: Record<PackageManager, string[]> = {
  pnpm: ["pnpm-lock.yaml"],
  yarn: ["yarn.lock"],
  berry: ["yarn.lock"],
  npm: ["package-lock.json", "npm-shrinkwrap.json"],
  bun: ["bun.lock", "bun.lockb"],
};

export const programOf = (manager: PackageManager): Program => (manager === "berry" ? "yarn" : manager);

export const locksOf = (sources: Sources, manager: PackageManager): string[] =>
  present(sources, lockFiles[manager]);

export const isLocked = (sources: Sources): boolean =>
  present(sources, Object.values(lockFiles).flat()).length > 0;

/** What `packageManager` says, which Corepack reads itself. */
export function namedBy({ packageManager }: PackageJson): { name: string; version: string } {
  const [name = "", version = ""] = typeof packageManager === "string" ? packageManager.split("@") : [];
  return { name, version };
}

const rangeCharacters = 100;

/** The range of releases that is asked for elsewhere than in `packageManager`; null where it is none. */
function askedOf(
  sources: Sources,
  { engines, devEngines, volta }: PackageJson,
  program: Program,
): string | null {
  const named = tableIn(devEngines, "packageManager");
  const asked = [
    tableIn(volta)?.[program],
    engines?.[program],
    named?.["name"] === program ? (named["version"] ?? "*") : null,
    program === "bun" ? textOf(sources, ".bun-version").trim() : null,
    toolVersion(sources, program),
  ];
  const range = asked.find((one) => typeof one === "string" && one !== "" && one.length <= rangeCharacters);
  return typeof range === "string" ? validRange(range, { loose: true }) : null;
}

export function packageManagerOf(sources: Sources, manifest: PackageJson): PackageManager {
  const { name, version } = namedBy(manifest);
  const yarn = askedOf(sources, manifest, "yarn");
  const isBerry =
    textOf(sources, "yarn.lock").includes("__metadata:") ||
    sources.files.has(".yarnrc.yml") ||
    (name === "yarn" ? /^[2-9]/.test(version) : yarn !== null && !allows(yarn, "1"));
  const managers = ["pnpm", isBerry ? "berry" : "yarn", "npm", "bun"] as const;
  const isNamed = (manager: PackageManager) => programOf(manager) === name;
  const isAsked = (manager: PackageManager) =>
    manager !== "npm" && askedOf(sources, manifest, programOf(manager)) !== null;
  const locked = managers.filter((manager) => locksOf(sources, manager).length > 0);
  return (
    locked.find(isNamed) ??
    locked.find(isAsked) ??
    locked[0] ??
    managers.find(isNamed) ??
    managers.find(isAsked) ??
    (sources.files.has("pnpm-workspace.yaml") ? "pnpm" : "npm")
  );
}

/** The major versions that read a lock file, by its version, the best one first. */
const pnpmMajors: Record<string, number[]> = { "5": [7, 6], "6": [8, 7], "9": [10, 9, 11, 12] };
const berryMajors: Record<string, number[]> = { "4": [2], "5": [3, 2], "6": [3] };

function majorsOf(sources: Sources, manager: PackageManager): number[] {
  if (manager === "yarn") return [1];
  if (manager === "pnpm")
    return pnpmMajors[/^lockfileVersion: '?(\d)/m.exec(textOf(sources, "pnpm-lock.yaml"))?.[1] ?? ""] ?? [];
  if (manager !== "berry") return [];
  const lock = /^__metadata:\s+version: (\d)/m.exec(textOf(sources, "yarn.lock"))?.[1];
  return berryMajors[lock ?? ""] ?? [4, 3, 2];
}

/**
 * The release of pnpm or Yarn that reads the lock file and that `engines` allows; null where package.json names one. Corepack's
 * own default reads no lock files of older releases, and is whatever its registry calls the latest.
 */
export function releaseOf(sources: Sources, manager: PackageManager, manifest: PackageJson): string | null {
  const program = programOf(manager);
  if (manager === "npm" || manager === "bun" || namedBy(manifest).name === program) return null;
  const asked = askedOf(sources, manifest, program);
  const majors = majorsOf(sources, manager);
  if (asked === null) return majors[0] === undefined ? null : `${program}@${majors[0]}`;
  const major = majors.find((one) => allows(asked, `${one}`));
  return `${program}@${major === undefined ? asked : within(asked, major)}`;
}

/**
 * From pnpm 10 on, a package's install script is run only where the repository approves it. Up to 9, which writes the same lock file, all
 * are: whether that is to be so tells a repository only that names a release, or what it approves.
 */
export function approvesNoScripts(sources: Sources, manager: PackageManager, manifest: PackageJson): boolean {
  const asked = askedOf(sources, manifest, "pnpm");
  const settings = ["package.json", "pnpm-workspace.yaml", ".npmrc"].map((file) => textOf(sources, file));
  return (
    manager === "pnpm" &&
    namedBy(manifest).name !== "pnpm" &&
    (asked === null || allows(asked, "9")) &&
    !settings.some((text) => approvals.test(text))
  );
}
const approvals = /(?:only|never|ignored)-?built-?dependencies|allow-?(?:all-?)?builds/i;

/** The part of a range that is of one major version. */
function within(range: string, major: number): string {
  if (subset(`${major}`, range)) return `${major}`;
  const alternatives = new Range(range).set.map((all) => all.map(({ value }) => value).join(" "));
  return alternatives
    .filter((one) => allows(one, `${major}`))
    .map((one) => (subset(one, `${major}`) ? one : `${one} >=${major}.0.0 <${major + 1}.0.0-0`))
    .join(" || ");
}

/** What npm installs Bun by. */
export function bunRelease(sources: Sources, manifest: PackageJson): string {
  const { name, version } = namedBy(manifest);
  const named = name === "bun" ? /^\d+\.\d+\.\d+/.exec(version)?.[0] : undefined;
  const release = named ?? askedOf(sources, manifest, "bun");
  return release === null || release === "*" ? "bun" : `bun@${release}`;
}

/** The release of Yarn that lies in the repository, which its settings name; null where it is not there. */
export function yarnFileOf(sources: Sources, manager: PackageManager): string | null {
  if (manager !== "berry") return null;
  const path = parseYaml(textOf(sources, ".yarnrc.yml"))?.["yarnPath"];
  const file = typeof path === "string" ? path.replace(/^\.\//, "") : "";
  return /^[\w.][\w./-]*$/.test(file) && sources.files.has(file) ? file : null;
}

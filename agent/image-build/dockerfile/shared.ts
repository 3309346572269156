import { bunShared, corepackShared, nodeShared, npmCode, npmShared, tools } from "./node.ts";
import { phpShared } from "./php.ts";
import { pythonShared } from "./python.ts";

/** An image of a host's own: a base image, and steps at the start of a stage that are the same for every site. */
export type SharedBase = { kind: string; image: string };

const managers: [release: string, isYarnFromNpm: boolean][] = [
  ["pnpm@7", false],
  ["pnpm@8", false],
  ["pnpm@10", false],
  ["yarn@1", true],
  ["yarn@3", true],
  ["yarn@4", true],
];

/** The longer ones first, as some begin as others do. Nothing of a tenant's is in them. */
const sharedSteps: [kind: string, steps: string[]][] = (
  [
    ["php", phpShared],
    ["python", pythonShared(null)],
    ...(["uv", "poetry", "pipenv"] as const).map((tool): [string, string[]] => [
      `python-${tool}`,
      pythonShared(tool),
    ]),
    ["npm", npmShared],
    ["node", nodeShared],
    ["node-bun", [...nodeShared, ...bunShared("bun")]],
    ["node-corepack", [...nodeShared, ...corepackShared(null, false)]],
    ...managers.map(([release, isYarnFromNpm]): [string, string[]] => [
      `node-${release.replace("@", "-")}`,
      [...nodeShared, ...corepackShared(release, isYarnFromNpm)],
    ]),
  ] satisfies [string, string[]][]
).toSorted(([, a], [, b]) => b.length - a.length);

/** Null where there is none of that kind. */
export const stepsOf = (kind: string): string[] | null =>
  sharedSteps.find(([name]) => name === kind)?.[1] ?? null;

const stageStart = /^FROM (\S+)(?: AS (\w+))?$/;

/** What a stage whose first line is at `at` begins with. */
export function sharedAt(lines: readonly string[], at: number): (SharedBase & { length: number }) | null {
  const image = stageStart.exec(lines[at] ?? "")?.[1];
  const found = sharedSteps.find(([, steps]) => steps.every((step, below) => lines[at + 1 + below] === step));
  return image === undefined || found === undefined
    ? null
    : { kind: found[0], image, length: found[1].length };
}

/** A step with npm's own cache. */
const isNpmInstall = (line: string): boolean =>
  line.startsWith("RUN ") &&
  line.includes(`,target=${tools.npm.cache} `) &&
  /\bnpm (?:ci|install)\b/.test(line);

/**
 * An install by npm with what Node has compiled of npm, by which it takes up to a tenth less. Nothing that it writes there is kept, so no code of an
 * app gets to another; a Dockerfile of ours that somebody takes along does without.
 */
const withNpmCode = (install: string, image: string): string =>
  install
    .replace("RUN ", `RUN --mount=type=bind,from=${image},source=${npmCode},target=${npmCode} `)
    .replace('["sh","-c","', `$&export NODE_COMPILE_CACHE=${npmCode}; `);

/** The Dockerfile with the images that the host has made of its stages' first steps and of npm. */
export async function withSharedBases(
  dockerfile: string,
  nameOf: (base: SharedBase) => Promise<string | null>,
): Promise<string> {
  const lines = dockerfile.split("\n");
  const replaced: string[] = [];
  const stages = new Set<string>();
  let image = "";
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const [, from, stage] = stageStart.exec(line) ?? [];
    if (from !== undefined) image = from;
    if (stage !== undefined) stages.add(stage);
    const shared = sharedAt(lines, at);
    if (shared !== null) {
      const name = await nameOf({ kind: shared.kind, image });
      replaced.push(name === null ? line : line.replace(image, name));
      if (name !== null) at += shared.length;
    } else if (isNpmInstall(line) && !stages.has(image)) {
      const name = await nameOf({ kind: "npm", image });
      replaced.push(name === null ? line : withNpmCode(line, name));
    } else replaced.push(line);
  }
  return replaced.join("\n");
}

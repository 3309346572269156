import { allows } from "./newest-minor.ts";
import type { PackageJson } from "./package-json.ts";
import { tableIn } from "./parse.ts";
import { textOf, toolVersion, type Sources } from "./sources.ts";

const defaultNode = 24;
/** Long-term support first, newest first. */
const majors = [defaultNode, 22, 20, 18, 16, 14, 12, 10, 26, 28, 25, 23, 21, 19, 17];
const names: Record<string, number> = {
  node: defaultNode,
  "*": defaultNode,
  krypton: 24,
  jod: 22,
  iron: 20,
  hydrogen: 18,
  gallium: 16,
};

/** What package.json says of Node: the release that Volta pins, or the range of releases that the app runs on or is developed with. */
export function askedNode({ volta, engines, devEngines }: PackageJson): unknown {
  const runtime = tableIn(devEngines, "runtime");
  return (
    tableIn(volta)?.["node"] ??
    engines?.["node"] ??
    (runtime?.["name"] === "node" ? runtime["version"] : null)
  );
}

/** The major version of Node asked for: a version file's, or the first that package.json's range allows. */
export function nodeMajor(sources: Sources, asked: unknown): number {
  const named = [
    textOf(sources, ".nvmrc"),
    textOf(sources, ".node-version"),
    toolVersion(sources, "node", "nodejs"),
  ];
  for (const text of named) {
    const major = fromVersionFile(text);
    if (major !== null) return major;
  }
  // A range is short; what is long is only slow to read.
  const range = typeof asked === "string" && asked.length <= 100 ? asked : null;
  return (range !== null && majors.find((major) => allows(range, `${major}`))) || defaultNode;
}

function fromVersionFile(text: string): number | null {
  const version = text.replace(/#.*/g, "").trim().toLowerCase();
  const digits = /^v?(\d{2})(?:\.|$)/.exec(version)?.[1];
  return digits === undefined ? (names[version.replace(/^lts\//, "")] ?? null) : Number(digits);
}

import { allows } from "./newest-minor.ts";
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

/** The major version of Node asked for: a version file's, or the first that `engines.node` allows. */
export function nodeMajor(sources: Sources, engines: unknown): number {
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
  const range = typeof engines === "string" && engines.length <= 100 ? engines : null;
  return (range !== null && majors.find((major) => allows(range, `${major}`))) || defaultNode;
}

function fromVersionFile(text: string): number | null {
  const version = text.replace(/#.*/g, "").trim().toLowerCase();
  const digits = /^v?(\d{2})(?:\.|$)/.exec(version)?.[1];
  return digits === undefined ? (names[version.replace(/^lts\//, "")] ?? null) : Number(digits);
}

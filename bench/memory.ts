import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stateDirectory } from "../test/e2e/service.ts";

/**
 * The memory of the idle service by process, less the engine and sites: the proportional set size (PSS), which counts what
 * processes share once. npm and scripts/run.mjs, which start it otherwise, are not among them.
 */
const parentOf = new Map<number, number>();
for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)))
  // A process may end meanwhile.
  try {
    const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    parentOf.set(Number(name), Number(fields[1]));
  } catch {
    continue;
  }

const childrenOf = (id: number): number[] =>
  [...parentOf].filter(([, parent]) => parent === id).map(([child]) => child);
const family = (id: number): number[] => [id, ...childrenOf(id).flatMap(family)];

const pssMb = (id: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))?.[1]) / 1024;

function nameOf(id: number): string {
  const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
  const file = words.find((word) => /\.(?:ts|mjs)$/.test(word)) ?? words[0] ?? "";
  return file.split("/").at(-1) ?? file;
}

const service = Number(readFileSync(join(stateDirectory, "start.pid"), "utf8"));
const members = family(service)
  .map((id) => ({ name: nameOf(id), mb: pssMb(id) }))
  .filter(({ name }) => !/^(?:dockerd|containerd|docker-proxy|runc)/.test(name));
console.log("| process | PSS, MB |\n|---|---|");
for (const { name, mb } of members) console.log(`| ${name} | ${mb.toFixed(0)} |`);
console.log(`| all | ${members.reduce((sum, { mb }) => sum + mb, 0).toFixed(0)} |`);

import { baseImages, databaseImages } from "./lib/base-images.ts";
import { runOnMachine } from "./lib/engine-machine.ts";

/** Runs benchmarks on the engine of another Debian. Usage: npm run bench:machine -- <trixie|sid> [names] */
const [suite = "", ...names] = process.argv.slice(2);
await runOnMachine(
  suite,
  [...baseImages, ...databaseImages],
  ["node", "scripts/run.mjs", "scripts/bench.ts", ...names],
  Object.keys(process.env).filter((name) => name.startsWith("BENCH_")),
);

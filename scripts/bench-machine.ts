import { baseImages, databaseImages } from "./lib/base-images.ts";
import { runOnMachine } from "./lib/engine-machine.ts";

/** Runs benchmarks on the engine of another Debian. Usage: npm run bench:machine -- <trixie|sid> [names] */
const [suite = "", ...names] = process.argv.slice(2);
const settings = Object.entries(process.env)
  .filter(([name]) => name.startsWith("BENCH_"))
  .map(([name, value]) => `${name}=${value}`);
await runOnMachine(
  suite,
  [...baseImages, ...databaseImages],
  ["env", ...settings, "node", "scripts/run.mjs", "scripts/bench.ts", ...names],
);

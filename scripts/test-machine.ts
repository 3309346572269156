import { standInImages } from "./lib/base-images.ts";
import { runOnMachine } from "./lib/engine-machine.ts";

/**
 * Runs tests on the engine of another Debian. Usage: npm run test:machine -- <trixie|sid> [arguments of vitest]; without --project it runs
 * the engine tests.
 */
const [suite = "", ...args] = process.argv.slice(2);
const tests = args.includes("--project")
  ? ["node", "scripts/run.mjs", "scripts/test.ts"]
  : ["vitest", "run", "--project", "engine"];
await runOnMachine(suite, standInImages, [...tests, ...args]);

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { memoryFolder } from "./lib/memory-folder.ts";
import { projectRoot } from "./lib/project-root.ts";
import { modulesToLint, testsToRun } from "./lib/test-inputs.ts";
import type { Counts } from "../test/support/closing-line.ts";

const run = (
  name: string,
  args: string[],
  env: Record<string, string> = {},
  shown = `${name} ${args.join(" ")}`,
): Promise<boolean> =>
  new Promise((resolve) => {
    const started = performance.now();
    const child = spawn(join(projectRoot, "node_modules", ".bin", name), args, {
      cwd: projectRoot,
      env: { ...process.env, BERTH_SIMULATION_SECONDS: "5", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("close", (code) => {
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(`${code === 0 ? "✓" : "✗"} ${shown}  ${seconds} s`);
      if (code !== 0) console.log(output);
      resolve(code === 0);
    });
  });

const cache = join("node_modules", ".cache", "check");

/** What a project's last check has found is kept, so that only what has changed since is read again. */
const types = (folder: string): Promise<boolean> => {
  const kept = join(cache, folder, "tsconfig.tsbuildinfo");
  return run("tsc", ["--project", join(folder, "tsconfig.json"), "--incremental", "--tsBuildInfoFile", kept]);
};

/** The modules in which something can be found that was not there last time; with --all, all of them. */
async function lint(): Promise<boolean> {
  const { all, changed, keep } = modulesToLint();
  const files = process.argv.includes("--all") ? all : changed;
  if (files.length === 0) return true;
  const options = ["--type-aware", "--deny-warnings", "--no-error-on-unmatched-pattern"];
  const isRight = await run(
    "oxlint",
    [...options, ...(files.length < all.length ? files : [])],
    {},
    `oxlint --type-aware (${files.length} of ${all.length} modules)`,
  );
  keep(files, isRight ? files : []);
  return isRight;
}

/** One after the other, beside the tests. */
async function readCode(): Promise<boolean> {
  let isRight = await run("oxfmt", ["--check", "."]);
  isRight = (await lint()) && isRight;
  for (const folder of [".", "worker", "web", join("test", "worker")])
    isRight = (await types(folder)) && isRight;
  return isRight;
}

/** The unit and Worker tests whose inputs are not those with which they passed last; with --all, all of them. */
async function runTests(): Promise<boolean> {
  const { all, changed, keep } = testsToRun();
  const files = process.argv.includes("--all") ? all : changed;
  const others = all.length - files.length;
  if (others > 0)
    console.log(
      `${files.length} of ${all.length} test files have new inputs; the others passed with these (--all runs them again)`,
    );
  if (files.length === 0) return true;
  const countsFile = join(projectRoot, cache, "counts.json");
  mkdirSync(dirname(countsFile), { recursive: true });
  rmSync(countsFile, { force: true });
  const isRight = await run(
    "vitest",
    [
      "run",
      "--project=unit",
      "--project=worker",
      "--reporter=default",
      "--reporter=./test/support/closing-line.ts",
      // By default vitest leaves a core free, which is half of two.
      `--maxWorkers=${availableParallelism()}`,
      ...(others > 0 ? files : []),
    ],
    { BERTH_COUNTS_FILE: countsFile, TMPDIR: memoryFolder() },
    `vitest run (${files.length} test files)`,
  );
  if (existsSync(countsFile)) {
    const { passedFiles } = JSON.parse(readFileSync(countsFile, "utf8")) as Counts;
    keep(files, passedFiles);
  }
  return isRight;
}

/** The fast loop: format, lint, types, unit and workerd tests. */
const results = await Promise.all([readCode(), runTests()]);
process.exit(results.every(Boolean) ? 0 : 1);

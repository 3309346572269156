import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { chosenTests } from "./lib/chosen-tests.ts";
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

/** Beside what reads the code, on two cores, they take nearly twice as long, and all together less than a minute and a half. */
const testsMs = 40_000;
const tookFile = join(cache, "took.json");

/** Paths of what is not committed. */
const changedPaths = (): string[] =>
  execFileSync("git", ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"], {
    cwd: projectRoot,
    encoding: "utf8",
  })
    .split("\0")
    .filter(Boolean)
    .map((line) => line.slice(3));

/**
 * The unit and Worker tests whose inputs are not those with which they passed last, those first that are closest to what was changed, as
 * many as there is time for; with --all, all of them.
 */
async function runTests(): Promise<boolean> {
  const { all, changed, keep } = testsToRun();
  const isAll = process.argv.includes("--all");
  const tookMs: Record<string, number> = existsSync(tookFile)
    ? JSON.parse(readFileSync(tookFile, "utf8"))
    : {};
  const files = isAll
    ? all
    : chosenTests(changed, testsMs * availableParallelism(), {
        changed: changedPaths(),
        tookMs,
        textOf: (test) => readFileSync(join(projectRoot, test), "utf8"),
      });
  if (!isAll && changed.length < all.length)
    console.log(
      `${changed.length} of ${all.length} test files have new inputs; the others passed with these (--all runs them again)`,
    );
  const later = changed.length - files.length;
  if (later > 0)
    console.log(
      `${files.length} test files run now, those closest to what was changed; ${later} are left for the next run (--all runs all at once)`,
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
      ...(files.length < all.length ? files : []),
    ],
    { BERTH_COUNTS_FILE: countsFile, TMPDIR: memoryFolder() },
    `vitest run (${files.length} test files)`,
  );
  if (existsSync(countsFile)) {
    const counts = JSON.parse(readFileSync(countsFile, "utf8")) as Counts;
    keep(files, counts.passedFiles);
    writeFileSync(tookFile, JSON.stringify({ ...tookMs, ...counts.tookMs }));
  }
  return isRight;
}

/** The fast loop: format, lint, types, unit and Worker tests. */
const results = await Promise.all([readCode(), runTests()]);
process.exit(results.every(Boolean) ? 0 : 1);

import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

export type Counts = {
  passed: number;
  failed: number;
  skipped: number;
  /** A line for each failed test and hook, and for each error outside of both: where it is, and the error. */
  failures: string[];
  /** How many of them came from no file that could be run again. */
  unplaced: number;
  failedFiles: string[];
  /** Empty where an error came from no test: it can be any file's. */
  passedFiles: string[];
  /** Of each file's tests and hooks. */
  tookMs: Record<string, number>;
};

/** `N passed, N failed`, and `, N skipped` if there are any. */
export const closingLine = ({
  passed,
  failed,
  skipped,
}: Pick<Counts, "passed" | "failed" | "skipped">): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;

/** Prints the run's last line. For scripts/test.ts, which adds up several runs, the counts are written to a file. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    const firstLine = (error: unknown) =>
      String((error as Error | undefined)?.message ?? error).split("\n", 1)[0];
    const placeOf = (error: unknown) => (error as { VITEST_TEST_PATH?: string }).VITEST_TEST_PATH;
    const failures = errors.map(
      (error) => `${relative(process.cwd(), placeOf(error) ?? "")} > outside of a test: ${firstLine(error)}`,
    );
    for (const module of modules) {
      const file = module.relativeModuleId;
      if (module.children.size === 0 && module.errors().length === 0) failures.push(`${file}: has no test`);
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        count[state]++;
        if (state === "failed" || state === "pending")
          failures.push(`${file} > ${test.fullName}: ${errors ? firstLine(errors[0]) : state}`);
      }
      // What fails in a hook fails no test.
      for (const suite of [module, ...module.children.allSuites()])
        for (const error of suite.errors())
          failures.push(`${file}${"fullName" in suite ? ` > ${suite.fullName}` : ""}: ${firstLine(error)}`);
    }
    const places = new Set(errors.map(placeOf));
    const failedFiles = modules
      .filter((module) => !module.ok() || places.has(module.moduleId))
      .map((module) => module.relativeModuleId);
    const passed = modules.filter(
      (module) =>
        module.ok() &&
        module.children.size > 0 &&
        [...module.children.allTests()].every((test) => test.result().state === "passed"),
    );
    const counts: Counts = {
      passed: count.passed,
      failed: failures.length,
      skipped: count.skipped,
      failures,
      unplaced: errors.filter((error) => placeOf(error) === undefined).length,
      failedFiles,
      passedFiles: errors.length > 0 ? [] : passed.map((module) => module.relativeModuleId),
      tookMs: Object.fromEntries(
        modules.map((module) => [module.relativeModuleId, Math.round(module.diagnostic().duration)]),
      ),
    };
    const file = process.env["BERTH_COUNTS_FILE"];
    if (file) writeFileSync(file, JSON.stringify(counts));
    else process.on("exit", () => process.stdout.write(`\n${closingLine(counts)}\n`));
  }
}

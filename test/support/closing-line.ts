import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

export type Counts = {
  passed: number;
  failed: number;
  skipped: number;
  /** A line for each failed test: where it is, its sentence, and its error. */
  failures: string[];
  failedFiles: string[];
  /** Empty where an error came from no test: it can be any file's. */
  passedFiles: string[];
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
    const failures: string[] = [];
    for (const module of modules)
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        count[state]++;
        const why = errors?.[0]?.message.split("\n", 1)[0] ?? state;
        if (state === "failed" || state === "pending")
          failures.push(`${module.relativeModuleId} > ${test.fullName}: ${why}`);
      }
    const broken = modules.filter(
      (module) => module.children.size === 0 || module.errors().length > 0,
    ).length;
    const failed = count.failed + count.pending + broken + errors.length;
    const failedFiles = modules.filter((module) => !module.ok()).map((module) => module.relativeModuleId);
    const passed = modules.filter(
      (module) =>
        module.children.size > 0 &&
        module.errors().length === 0 &&
        [...module.children.allTests()].every((test) => test.result().state === "passed"),
    );
    const counts: Counts = {
      passed: count.passed,
      failed,
      skipped: count.skipped,
      failures,
      failedFiles,
      passedFiles: errors.length > 0 ? [] : passed.map((module) => module.relativeModuleId),
    };
    const file = process.env["BERTH_COUNTS_FILE"];
    if (file) writeFileSync(file, JSON.stringify(counts));
    else process.on("exit", () => process.stdout.write(`\n${closingLine(counts)}\n`));
  }
}

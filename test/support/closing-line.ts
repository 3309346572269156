import type { Reporter, TestModule } from "vitest/node";

/** Prints the run's last line: `N passed, N failed`, and `, N skipped` when there are any. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) for (const test of module.children.allTests()) count[test.result().state]++;
    const broken = modules.filter(
      (module) => module.children.size === 0 || module.errors().length > 0,
    ).length;
    const failed = count.failed + count.pending + broken + errors.length;
    const line = `${count.passed} passed, ${failed} failed${count.skipped > 0 ? `, ${count.skipped} skipped` : ""}`;
    process.on("exit", () => process.stdout.write(`\n${line}\n`));
  }
}

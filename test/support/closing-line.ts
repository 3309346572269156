import { writeFileSync } from "node:fs";
import type { Reporter, TestModule } from "vitest/node";

/** The run's last line: `N passed, N failed`, and `, N skipped` when there are any. For scripts/test.ts it goes to a file. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) for (const test of module.children.allTests()) count[test.result().state]++;
    const broken = modules.filter(
      (module) => module.children.size === 0 || module.errors().length > 0,
    ).length;
    const failed = count.failed + count.pending + broken + errors.length;
    const line = `${count.passed} passed, ${failed} failed${count.skipped > 0 ? `, ${count.skipped} skipped` : ""}`;
    const file = process.env["BERTH_CLOSING_LINE_FILE"];
    if (file) writeFileSync(file, line);
    else process.on("exit", () => process.stdout.write(`\n${line}\n`));
  }
}

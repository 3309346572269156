import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished, TestRunner } from "vitest";

/**
 * A folder that is removed with the test that asks for it, in its `beforeEach` too, and outside of tests with the suite.
 * Not for `beforeAll`, in which nothing can be said to come after the suite.
 */
export function temporaryFolder(within = tmpdir()): string {
  const folder = mkdtempSync(join(within, "berth-test-"));
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  if (TestRunner.getCurrentTest()) onTestFinished(remove);
  else afterAll(remove);
  return folder;
}

import { expect, it } from "vitest";
import { runAgain, type Outcome } from "../../scripts/lib/run-again.ts";

const one = "test/e2e/one.test.ts";
const other = "test/e2e/other.test.ts";

/** A run in which a test of each of these files failed. */
const run = (failedFiles: string[], more: Partial<Outcome["counts"]> = {}): Outcome => ({
  status: failedFiles.length > 0 ? 1 : 0,
  counts: {
    passed: 10,
    failed: failedFiles.length,
    skipped: 0,
    failures: failedFiles.map((file) => `${file} > it works`),
    unplaced: 0,
    failedFiles,
    passedFiles: [],
    tookMs: {},
    ...more,
  },
});

/** What the first run comes to if the next ones are these, and which files were run in them. */
async function after(first: Outcome, ...next: Outcome[]) {
  const asked: string[][] = [];
  const { status, counts, flaky } = await runAgain(first, async (files) => {
    asked.push([...files]);
    const outcome = next.shift();
    if (!outcome) throw new Error("One run too many");
    return outcome;
  });
  return { status, passed: counts.passed, failed: counts.failed, flaky, asked };
}

it("what passed is not run again", async () => {
  expect(await after(run([]))).toEqual({ status: 0, passed: 10, failed: 0, flaky: [], asked: [] });
});

it("files that failed are run once more, and if they pass their tests count as passed and are named", async () => {
  expect(await after(run([one, other]), run([]))).toEqual({
    status: 0,
    passed: 12,
    failed: 0,
    flaky: [`failed once, passed alone: ${one} > it works`, `failed once, passed alone: ${other} > it works`],
    asked: [[one, other]],
  });
});

it("a test or two that fail again are run a third time, without the files that passed meanwhile", async () => {
  expect(await after(run([one, other]), run([other]), run([]))).toMatchObject({
    status: 0,
    passed: 12,
    flaky: [
      expect.stringContaining("failed once"),
      expect.stringContaining("failed once"),
      `failed again alone, then passed: ${other} > it works`,
    ],
    asked: [[one, other], [other]],
  });
});

it.each<[string, Outcome, ...Outcome[]]>([
  ["what fails three times", run([one, other]), run([one]), run([one])],
  ["more than two tests that fail again", run([one]), run([one], { failed: 3 })],
  ["a second run that ended without a result", run([one]), { ...run([], { failed: 1 }), status: 1 }],
  ["an error of no file", run([one], { unplaced: 1 })],
  ["a failure in many files", run(Array.from({ length: 13 }, (_, at) => `${at}.test.ts`))],
])("%s has failed", async (_, first, ...next) => {
  const { status, failed, flaky, asked } = await after(first, ...next);
  expect([status, failed, flaky, asked.length]).toEqual([1, first.counts.failed, [], next.length]);
});

import type { Counts } from "../../test/support/closing-line.ts";

export type Outcome = { status: number; counts: Counts };

/** More files than these that fail at once are no matter of chance. */
const mostFiles = 12;
/** Nor are more tests than these that fail again alone. */
const mostTests = 2;

/**
 * What a run of tests comes to if the files in which a test failed are run once more, alone, and a few tests that fail there a third
 * time: tests share two cores with each other and with other machines, and those of the Worker a workerd. A failure of more files than
 * `mostFiles`, or of none, stands.
 *
 * @returns with `flaky`: the tests that failed and then passed, each a fault of a test or of Berth
 */
export async function runAgain(
  first: Outcome,
  runAlone: (files: readonly string[]) => Promise<Outcome>,
): Promise<Outcome & { flaky: string[] }> {
  const { passed, failed, unplaced, failedFiles } = first.counts;
  const flaky = first.counts.failures.map((failure) => `failed once, passed alone: ${failure}`);
  if (failed === 0 || unplaced > 0 || failedFiles.length > mostFiles) return { ...first, flaky: [] };
  let again = await runAlone(failedFiles);
  const { counts } = again;
  if (
    again.status !== 0 &&
    counts.failed <= mostTests &&
    counts.unplaced === 0 &&
    counts.failedFiles.length > 0
  ) {
    flaky.push(...counts.failures.map((failure) => `failed again alone, then passed: ${failure}`));
    again = await runAlone(counts.failedFiles);
  }
  if (again.status !== 0) return { ...first, flaky: [] };
  const none = { failed: 0, failures: [], failedFiles: [] };
  return { status: 0, counts: { ...first.counts, ...none, passed: passed + failed }, flaky };
}

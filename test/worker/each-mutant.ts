import { inject, TestRunner, type RunnerTestCase, type RunnerTestSuite } from "vitest";
import type { Verdict } from "../mutants/verdict.ts";
import { renameLimits } from "./rename-limits.ts";

type Hits = Record<string, number>;
/** What Stryker's instrumented code reads and writes; `__stryker__` is its name for it. */
type Instrumentation = {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number;
  mutantCoverage?: { static: Hits; perTest: Record<string, Hits> };
};
const stryker: Instrumentation = ((globalThis as unknown as { __stryker__?: Instrumentation }).__stryker__ ??=
  {});

// Tests fake timers and the time.
const { setTimeout, clearTimeout, Date } = globalThis;
const detected = new Set(inject("detectedMutants"));
const survivals = new Map(Object.entries(inject("survivals")));
const mostSurvivals = inject("mostSurvivals");
const endsAtMs = inject("endsAtMs");
class TooSlow extends Error {}

/** What the Worker keeps under its bindings for as long as its isolate lives: its configuration, better-auth, prepared statements. */
const keptByWorker: [WeakMap<object, unknown>, object][] = [];
// oxlint-disable-next-line typescript/unbound-method -- called with the map
const set = WeakMap.prototype.set;
// oxlint-disable-next-line eslint/no-extend-native -- in a run of mutants alone
WeakMap.prototype.set = function (key: WeakKey, value: unknown) {
  if (typeof key === "object" && ("RATE_LIMIT" in key || "prepare" in key)) keptByWorker.push([this, key]);
  return set.call(this, key, value) as WeakMap<WeakKey, unknown>;
};

/** What is made once is also made with the mutant, and each test reaches it. */
function forgetKept(): void {
  for (const [map, key] of keptByWorker.splice(0)) map.delete(key);
}

/**
 * Runs each test first as it is, to see which mutants it reaches, and then once more for each of those that no test
 * has detected yet. All mutants share one workerd, which takes seconds to start, and one installation, as the tests of
 * a file do.
 */
export default class EachMutant extends TestRunner {
  override onBeforeTryTask(...args: Parameters<TestRunner["onBeforeTryTask"]>): void {
    super.onBeforeTryTask(...args);
    stryker.currentTestId = args[0].id;
    forgetKept();
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const startedMs = Date.now();
    await TestRunner.getTestFn(test)();
    let tookMs = Date.now() - startedMs;
    const limitMs = 5 * tookMs + 3000;
    const hits = stryker.mutantCoverage?.perTest[test.id] ?? {};
    // What repetitions reach is not counted for any test.
    stryker.currentTestId = "repetition";
    test.meta.hits = hits;
    test.meta.verdicts = {};
    test.meta.survived = [];
    const isOpen = (id: string) =>
      Date.now() < endsAtMs && !detected.has(id) && (survivals.get(id) ?? 0) < mostSurvivals;
    // A failure says something about a mutant only if the same test has passed without it just before.
    let isClean = false;
    for (const mutant of Object.keys(hits)) {
      if (!isOpen(mutant)) continue;
      if (!isClean) {
        const beganMs = Date.now();
        const control = await attempt(test, limitMs);
        if (control) {
          test.meta.unrepeatable = control.reason;
          break;
        }
        tookMs = Date.now() - beganMs;
      }
      // Most mutants are detected by what a test waits for in vain.
      const verdict = await attempt(test, 2 * tookMs + 1500, mutant, 100 * (hits[mutant] ?? 0) + 1000);
      isClean = verdict === null;
      if (verdict) {
        detected.add(mutant);
        test.meta.verdicts[mutant] = verdict;
      } else {
        survivals.set(mutant, (survivals.get(mutant) ?? 0) + 1);
        test.meta.survived.push(mutant);
      }
    }
    stryker.currentTestId = undefined;
  }
}

/** Runs the test again, with its hooks, and the mutant switched on if one is named. @returns null if it passes */
async function attempt(
  test: RunnerTestCase,
  limitMs: number,
  mutant?: string,
  hitLimit = Number.POSITIVE_INFINITY,
): Promise<Verdict | null> {
  const suites: RunnerTestSuite[] = [];
  for (let suite = test.suite ?? test.file; suite; suite = suite.suite ?? suite.file)
    if (suites.includes(suite)) break;
    else suites.unshift(suite);
  const cleanUps: unknown[] = [];
  // However often a test is repeated, it is within the limits.
  renameLimits();
  Object.assign(stryker, { activeMutant: mutant, hitCount: 0, hitLimit });
  forgetKept();
  const run = async () => {
    for (const suite of suites)
      for (const hook of TestRunner.getSuiteHooks(suite).beforeEach)
        cleanUps.push(await hook(test.context, suite));
    await TestRunner.getTestFn(test)();
  };
  try {
    await within(limitMs, run());
    return null;
  } catch (error) {
    return { status: error instanceof TooSlow ? "timeout" : "killed", reason: String(error).slice(0, 300) };
  } finally {
    Object.assign(stryker, { activeMutant: undefined, hitCount: undefined });
    forgetKept();
    for (const suite of suites.toReversed())
      for (const hook of TestRunner.getSuiteHooks(suite).afterEach)
        cleanUps.unshift(() => hook(test.context, suite));
    for (const end of cleanUps)
      if (typeof end === "function") await within(limitMs, end()).catch(() => undefined);
  }
}

async function within(limitMs: number, work: unknown): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooSlow(`It took longer than ${limitMs} ms`)), limitMs);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

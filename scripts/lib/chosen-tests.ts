import { basename, dirname } from "node:path";

/** Of a file that has not run yet. */
const expectedMs = 5000;

const wordsOf = (path: string): string[] =>
  path
    .split(/[/.-]/)
    .map((word) => word.replace(/s$/, ""))
    .filter((word) => word.length > 3 && word !== "worker" && word !== "test");

/** 3: changed itself, 2: imports what was changed, 1: is named like it or its folder, 0: may only be affected. */
function relevance(test: string, text: string, changed: readonly string[]): number {
  if (changed.includes(test)) return 3;
  if (changed.some((path) => text.includes(`/${basename(path)}"`))) return 2;
  const about = wordsOf(basename(test));
  const near = changed.flatMap((path) => [...wordsOf(basename(path)), ...wordsOf(basename(dirname(path)))]);
  return about.some((word) => near.includes(word)) ? 1 : 0;
}

/**
 * As many of these test files as fit into so much time, and at least one: those that are closest to what was changed first, of equally
 * close ones the quick ones. @param changed paths of what was changed since the last commit @param tookMs what each took last time
 */
export function chosenTests(
  tests: readonly string[],
  budgetMs: number,
  {
    changed,
    tookMs,
    textOf,
  }: {
    changed: readonly string[];
    tookMs: Readonly<Record<string, number>>;
    textOf: (test: string) => string;
  },
): string[] {
  const costOf = (test: string) => tookMs[test] ?? expectedMs;
  const ranked = tests
    .map((test) => ({ test, rank: relevance(test, textOf(test), changed) }))
    .toSorted((one, other) => other.rank - one.rank || costOf(one.test) - costOf(other.test))
    .map(({ test }) => test);
  let leftMs = budgetMs;
  const fitting = ranked.findIndex((test) => (leftMs -= costOf(test)) < 0);
  return fitting < 0 ? ranked : ranked.slice(0, Math.max(1, fitting));
}

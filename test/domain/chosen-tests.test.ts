import { expect, it } from "vitest";
import { chosenTests } from "../../scripts/lib/chosen-tests.ts";

const texts: Record<string, string> = {
  "test/worker/billing.test.ts": 'import { pay } from "./service.ts";',
  "test/worker/site-pages.test.ts": "",
  "test/worker/terms.test.ts": "",
  "test/worker/term-steps.test.ts": 'import { issue } from "../../worker/billing/terms/issue.ts";',
  "test/worker/zoo.test.ts": "",
};
const all = Object.keys(texts);
const choose = (
  budgetMs: number,
  changed: string[] = [],
  tookMs: Record<string, number> = Object.fromEntries(all.map((test) => [test, 10])),
) => chosenTests(all, budgetMs, { changed, tookMs, textOf: (test) => texts[test] ?? "" });

it("all run where there is time", () => {
  expect(choose(50).toSorted()).toEqual(all.toSorted());
});

it("those run first that were changed, then those that import what was, then those that are named like it or its folder", () => {
  expect(choose(40, ["worker/billing/terms/issue.ts", "test/worker/zoo.test.ts"])).toEqual([
    "test/worker/zoo.test.ts",
    "test/worker/term-steps.test.ts",
    "test/worker/terms.test.ts",
    "test/worker/billing.test.ts",
  ]);
});

it("of what is equally close the quick ones run, as many as fit; what never ran is expected to take five seconds", () => {
  const tookMs = { "test/worker/terms.test.ts": 30, "test/worker/billing.test.ts": 20 };
  expect(choose(5060, [], tookMs)).toEqual([
    "test/worker/billing.test.ts",
    "test/worker/terms.test.ts",
    "test/worker/site-pages.test.ts",
  ]);
});

it("one runs even if it takes longer than there is time", () => {
  expect(choose(5)).toHaveLength(1);
});

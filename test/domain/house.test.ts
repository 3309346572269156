import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Files of the Worker whose text matches. */
const filesWith = (pattern: RegExp): string[] =>
  globSync("worker/**/*.{ts,tsx}", { cwd: root }).filter((file) =>
    pattern.test(readFileSync(join(root, file), "utf8")),
  );

it("what a batch answers is read by name, never by position", () => {
  expect(filesWith(/(?:=>?|return|\()\s*(?:await\s+)?[\w.]+\.batch\(/).toSorted()).toEqual([
    // Hands on what other batches answer, less the statement that it adds.
    "worker/db/announce.ts",
    "worker/db/batch.ts",
    // Hands on what other batches answer, with a row of activity behind them.
    "worker/services/activity/record.ts",
  ]);
});

it("a job is queued by one statement", () => {
  expect(filesWith(/INSERT INTO jobs|insert\(jobs\)/)).toEqual(["worker/jobs/insert.ts"]);
});

it("docs/design.md has a reason for each dependency", () => {
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, object>;
  const design = read("docs/design.md");
  const names = Object.keys({ ...dependencies, ...devDependencies });
  expect(names.filter((name) => !name.startsWith("@types/") && !design.includes(`\`${name}\``))).toEqual([]);
});

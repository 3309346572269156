import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { keysOfTests, testsToRun } from "../../scripts/lib/test-inputs.ts";

let root: string;
const write = (file: string, text: string): void => {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
};
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "berth-test-inputs-"));
  const made = root;
  onTestFinished(() => rmSync(made, { recursive: true }));
  execFileSync("git", ["init", "--quiet", root]);
  write(".gitignore", "node_modules\n");
  for (const file of ["vitest.config.ts", "worker/index.ts", "worker/embedded/worker.ts", "agent/a.ts"])
    write(file, "");
});

/** The test files that must run again after this. */
function changedBy(change: () => void): string[] {
  const before = keysOfTests(root, {});
  change();
  return [...keysOfTests(root, {})].filter(([test, key]) => before.get(test) !== key).map(([test]) => test);
}

const one = "test/domain/one.test.ts";

describe("a test file has new inputs", () => {
  it.each([
    ["imports it", 'import { a } from "../../agent/a.ts";\n'],
    ["imports it on several lines", 'import {\n  a,\n  type B,\n} from "../../agent/a.ts";\n'],
    ["imports it when it runs", 'await import("../../agent/a.ts");\n'],
    ["exports what is in it", 'export * from "../../agent/a.ts";\n'],
    ["reads it", 'readFileSync(join(import.meta.dirname, "../../agent/a.ts"));\n'],
    ["reads its folder", 'readdirSync(new URL("../../agent", import.meta.url));\n'],
    ["reads the whole project", 'const root = join(import.meta.dirname, "../..");\n'],
    ["knows where it lies", 'const here = dirname(import.meta.filename); read(here, "a");\n'],
    ["knows where it lies as a URL", "const require = createRequire(import.meta.url);\n"],
    ["imports something computed", "await import(`../../agent/${name}.ts`);\n"],
    ["imports what is not there", 'import { b } from "../../agent/b.js";\n'],
  ])("where a file was changed and it %s, itself or through another module", (_, text) => {
    write(one, text);
    write("test/domain/two.test.ts", 'import "../support/two.ts";\n');
    write("test/support/two.ts", text);
    write("test/domain/other.test.ts", "");
    expect(changedBy(() => write("agent/a.ts", "changed")).toSorted()).toEqual([
      one,
      "test/domain/two.test.ts",
    ]);
  });

  it.each([
    "vitest.config.ts",
    "node_modules/.package-lock.json",
    "drizzle/0000.sql",
    "test/support/outside.ts",
  ])("where %s was changed, whatever it imports", (file) => {
    write(one, "");
    expect(changedBy(() => write(file, "changed"))).toEqual([one]);
  });

  it("where the Worker was changed, if it runs in workerd", () => {
    write(one, "");
    write("test/worker/sites.test.ts", "");
    write("worker/index.ts", 'import "./deep.ts";\n');
    write("worker/deep.ts", "");
    expect(changedBy(() => write("worker/deep.ts", "changed"))).toEqual(["test/worker/sites.test.ts"]);
  });

  it("where its snapshots or a setting are other ones", () => {
    write(one, "");
    expect(changedBy(() => write("test/domain/__snapshots__/one.test.ts.snap", "x"))).toEqual([one]);
    expect(keysOfTests(root, { BERTH_SEED: "1" })).not.toEqual(keysOfTests(root, {}));
  });
});

it("a test file has the inputs of before where only types, or what it does not reach, were changed", () => {
  write(one, 'import type { A } from "../../agent/a.ts";\n');
  write("test/domain/two.test.ts", "const program = import.meta.filename;\n");
  expect(changedBy(() => write("agent/a.ts", "changed"))).toEqual([]);
});

it("a test file runs until it passes, again when it is edited meanwhile or fails, and not after it has passed", () => {
  const two = "test/domain/two.test.ts";
  for (const file of [one, two]) write(file, "");
  const run = () => testsToRun(root, join(root, "node_modules", "passed.json"));
  expect(run()).toMatchObject({ all: [one, two], changed: [one, two] });
  run().keep([one, two], [two]);
  expect(run().changed).toEqual([one]);
  const { keep } = run();
  write(one, "edited");
  keep([one], [one]);
  expect(run().changed).toEqual([one]);
  run().keep([one], [one]);
  expect(run().changed).toEqual([]);
  run().keep([two], []);
  expect(run().changed).toEqual([two]);
});

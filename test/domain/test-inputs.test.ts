import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { keysOfLint, keysOfTests, modulesToLint, testsToRun } from "../../scripts/lib/test-inputs.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let root: string;
const write = (file: string, text: string): void => {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
};
beforeEach(() => {
  root = temporaryFolder();
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
    "test/support/patience.ts",
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

describe("a module is linted again", () => {
  const lintedAfter = (change: () => void): string[] => {
    const before = keysOfLint(root);
    change();
    return [...keysOfLint(root)].filter(([file, key]) => before.get(file) !== key).map(([file]) => file);
  };

  it("where it, or what it imports, was changed, even if it uses nothing but its types", () => {
    write("agent/b.ts", 'import type { A } from "./a.ts";\n');
    write("agent/c.ts", 'export type C = import("./b.ts").B;\n');
    write("agent/d.ts", "");
    expect(lintedAfter(() => write("agent/a.ts", "changed")).toSorted()).toEqual([
      "agent/a.ts",
      "agent/b.ts",
      "agent/c.ts",
    ]);
  });

  it("where what it imports is there at last, or may be found under another name", () => {
    write("agent/b.ts", 'import type { A } from "./later.ts";\n');
    expect(lintedAfter(() => write("agent/later.ts", ""))).toContain("agent/b.ts");
    write("agent/b.ts", 'import type { A } from "./a.js";\n');
    expect(lintedAfter(() => write("agent/a.ts", "changed"))).toContain("agent/b.ts");
  });

  it.each([".oxlintrc.json", "worker/tsconfig.json", "node_modules/.package-lock.json", "types/a.d.ts"])(
    "where %s was changed",
    (file) => {
      write(file, "");
      expect(lintedAfter(() => write(file, "changed"))).toContain("agent/a.ts");
    },
  );

  it("where another adds to everybody's types", () => {
    write("agent/b.ts", "declare global { interface A { b: 1 } }\n");
    expect(lintedAfter(() => write("agent/b.ts", "declare global { interface A { b: 2 } }\n"))).toContain(
      "agent/a.ts",
    );
  });

  it("until nothing is found in it", () => {
    const lint = () => modulesToLint(root, join(root, "node_modules", "linted.json"));
    const { all, keep } = lint();
    keep(all, []);
    expect(lint().changed).toEqual(all);
    keep(all, all);
    expect(lint().changed).toEqual([]);
  });
});

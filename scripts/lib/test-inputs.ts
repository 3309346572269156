import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { projectRoot } from "./project-root.ts";

/** The test files of the fast loop, and what each project loads besides. */
const projects = [
  {
    tests: "test/{domain,protocol,agent,client,cli}/**/*.test.ts",
    loads: ["test/support/outside.ts", "test/support/patience.ts"],
  },
  {
    tests: "test/worker/**/*.test.ts",
    loads: [
      "test/worker/migrate.ts",
      "test/support/patience.ts",
      "worker/index.ts",
      "worker/embedded/worker.ts",
    ],
  },
];

/** What every test depends on: how tests run, in which versions of everything, and what no module imports. */
const always = [
  "vitest.config.ts",
  "wrangler.toml",
  "package.json",
  "node_modules/.package-lock.json",
  "tsconfig.json",
  "{worker,web,test/worker}/tsconfig.json",
  "{drizzle,dist}/**/*",
];

const erased = /^(?:import|export) type [^;]*;/gm;
const imported = /(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g;
const literal = /["'`](\.{1,2}\/[^"'`\n]+)["'`]/g;
/** Where a module lies, used for nothing but a file or folder that is named, or itself. */
const located =
  /join\(import\.meta\.dirname, "([^"]+)"\)|new URL\("([^"]+)", import\.meta\.url\)|new URL\(import\.meta\.url\)\.search|(?<!\()import\.meta\.filename/g;
const isModule = /\.[cm]?[jt]sx?$/;
const ambient = /^declare (?:global|module)\b/m;
const unbounded = /import\.meta\b|\bimport\(\s*[^\s")]/;

type Edges = { to: string[]; isUnbounded: boolean };
/** The paths that this finds in a module, from the root. */
type Named = (pattern: RegExp) => string[];

/** The files of a project as `git add` would have them, and hashes of what they reach by their edges. */
function readProject(
  root: string,
  edgesIn: (text: string, namedIn: (text: string) => Named, all: ReadonlySet<string>) => Edges,
) {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 100_000_000,
  });
  const all = new Set(listed.split("\0").filter((file) => file && existsSync(join(root, file))));

  const hashes = new Map<string, string>();
  const hash = (file: string): string => {
    const path = join(root, file);
    const isFile = statSync(path, { throwIfNoEntry: false })?.isFile();
    const found =
      hashes.get(file) ??
      (isFile ? createHash("sha256").update(readFileSync(path)).digest("hex") : "nothing");
    hashes.set(file, found);
    return `${file} ${found}`;
  };

  const edges = new Map<string, Edges>();
  const edgesOf = (file: string): Edges => {
    const known = edges.get(file) ?? readEdges(file);
    edges.set(file, known);
    return known;
  };
  const readEdges = (file: string): Edges => {
    if (!isModule.test(file) || !all.has(file)) return { to: [], isUnbounded: false };
    const namedIn =
      (text: string): Named =>
      (pattern) =>
        [...text.matchAll(pattern)]
          .flatMap(([, first, second]) => first ?? second ?? [])
          .map((name) => relative(root, resolve(root, dirname(file), name)));
    return edgesIn(readFileSync(join(root, file), "utf8"), namedIn, all);
  };
  const reachedFrom = (starts: string[]): Set<string> => {
    const reached = new Set(starts);
    for (const file of reached) {
      const { to, isUnbounded } = edgesOf(file);
      if (isUnbounded) return all;
      for (const next of to) reached.add(next);
    }
    return reached;
  };
  const keyOf = (common: readonly string[], starts: string[]): string => {
    const inputs = [...common, ...[...reachedFrom(starts)].toSorted().map(hash)];
    return createHash("sha256").update(inputs.join("\n")).digest("hex");
  };
  return { all, hash, keyOf };
}

/**
 * What the result of each test file can depend on, as a hash. A module depends on every file of the project that a literal
 * in it names relative to itself, which includes all that it imports; and on the whole project, if it learns in any other
 * way where it lies, or imports what is computed. Nothing else can be reached: unit tests run outside of the project
 * (test/support/outside.ts), and workerd has no files.
 */
export function keysOfTests(root: string, env = process.env): Map<string, string> {
  const { hash, keyOf } = readProject(root, (whole, namedIn, all) => {
    const text = whole.replace(erased, "");
    const named = namedIn(text);
    const imports = named(imported);
    const within = named(located);
    return {
      to: [
        ...[...imports, ...named(literal), ...within].filter((path) => all.has(path)),
        ...within.flatMap((path) => [...all].filter((other) => path === "" || other.startsWith(`${path}/`))),
      ],
      isUnbounded: unbounded.test(text.replace(located, "")) || imports.some((path) => !all.has(path)),
    };
  });
  const settings = Object.keys(env).filter((name) => name.startsWith("BERTH_"));
  const common = [
    process.version,
    ...settings.toSorted().map((name) => `${name}=${env[name]}`),
    ...globSync(always, { cwd: root }).toSorted().map(hash),
  ];
  const keys = new Map<string, string>();
  for (const { tests, loads } of projects)
    for (const test of globSync(tests, { cwd: root, exclude: ["**/*.engine.test.ts"] })) {
      const snapshot = join(dirname(test), "__snapshots__", `${basename(test)}.snap`);
      keys.set(test, keyOf(common, [test, snapshot, "vitest.config.ts", ...loads]));
    }
  return keys;
}

/**
 * What the linter's findings in each module can depend on, as a hash: on all that it imports, types as well, whatever
 * adds to everybody's types, and the configuration.
 */
export function keysOfLint(root: string): Map<string, string> {
  const { all, hash, keyOf } = readProject(root, (text, namedIn, files) => {
    const imports = namedIn(text)(imported);
    // What is not there, or not yet, may be found under another name, unless its own is TypeScript's.
    return { to: imports, isUnbounded: imports.some((path) => !files.has(path) && !/\.tsx?$/.test(path)) };
  });
  const modules = [...all].filter((file) => isModule.test(file));
  const addsTypes = modules.filter(
    (file) => file.endsWith(".d.ts") || ambient.test(readFileSync(join(root, file), "utf8")),
  );
  const settings = [...all].filter((file) =>
    /(?:^|\/)(?:tsconfig[^/]*|package|\.oxlintrc)\.json$/.test(file),
  );
  const common = ["node_modules/.package-lock.json", ...settings.toSorted()].map(hash);
  return new Map(modules.map((file) => [file, keyOf(common, [file, ...addsTypes])]));
}

const cached = (file: string): string => join(projectRoot, "node_modules", ".cache", "check", file);

/** All files, and those whose inputs are not the ones with which they passed last. */
function toRun(keysOf: () => Map<string, string>, keptIn: string) {
  const before = keysOf();
  const kept: Record<string, string> = existsSync(keptIn) ? JSON.parse(readFileSync(keptIn, "utf8")) : {};
  return {
    all: [...before.keys()],
    changed: [...before].filter(([file, key]) => kept[file] !== key).map(([file]) => file),
    keep: (ran: string[], passed: string[]): void => {
      // What was edited meanwhile counts as not run.
      const after = keysOf();
      const [hasRun, hasPassed] = [new Set(ran), new Set(passed)];
      const held = [...after].filter(([file, key]) =>
        hasRun.has(file) ? hasPassed.has(file) && before.get(file) === key : kept[file] === key,
      );
      mkdirSync(dirname(keptIn), { recursive: true });
      writeFileSync(keptIn, JSON.stringify(Object.fromEntries(held)));
    },
  };
}

export const testsToRun = (root = projectRoot, keptIn = cached("passed.json")) =>
  toRun(() => keysOfTests(root), keptIn);

export const modulesToLint = (root = projectRoot, keptIn = cached("linted.json")) =>
  toRun(() => keysOfLint(root), keptIn);

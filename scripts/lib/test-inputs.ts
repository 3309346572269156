import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { projectRoot } from "./project-root.ts";

/** The test files of the fast loop, and what each project loads besides. */
const projects = [
  { tests: "test/{domain,protocol,agent,client,cli}/**/*.test.ts", loads: ["test/support/outside.ts"] },
  {
    tests: "test/worker/**/*.test.ts",
    loads: ["test/worker/migrate.ts", "worker/index.ts", "worker/embedded/worker.ts"],
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
const unbounded = /import\.meta\b|\bimport\(\s*[^\s")]/;

type Edges = { to: string[]; isUnbounded: boolean };

/**
 * What the result of each test file can depend on, as a hash. A module depends on every file of the project that a literal
 * in it names relative to itself, which includes all that it imports; and on the whole project, if it learns in any other
 * way where it lies, or imports what is computed. Nothing else can be reached: unit tests run outside of the project
 * (test/support/outside.ts), and workerd has no files.
 */
export function keysOfTests(root: string, env = process.env): Map<string, string> {
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
    if (!/\.[cm]?[jt]sx?$/.test(file) || !all.has(file)) return { to: [], isUnbounded: false };
    const text = readFileSync(join(root, file), "utf8").replace(erased, "");
    const named = (pattern: RegExp) =>
      [...text.matchAll(pattern)]
        .flatMap(([, first, second]) => first ?? second ?? [])
        .map((name) => relative(root, resolve(root, dirname(file), name)));
    const imports = named(imported);
    const within = named(located);
    return {
      to: [
        ...[...imports, ...named(literal), ...within].filter((path) => all.has(path)),
        ...within.flatMap((path) => [...all].filter((other) => path === "" || other.startsWith(`${path}/`))),
      ],
      isUnbounded: unbounded.test(text.replace(located, "")) || imports.some((path) => !all.has(path)),
    };
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
      const files = reachedFrom([test, snapshot, "vitest.config.ts", ...loads]);
      const inputs = [...common, ...[...files].toSorted().map(hash)];
      keys.set(test, createHash("sha256").update(inputs.join("\n")).digest("hex"));
    }
  return keys;
}

/** All test files of the fast loop, and those whose inputs are not the ones with which they passed last. */
export function testsToRun(
  root = projectRoot,
  keptIn = join(projectRoot, "node_modules", ".cache", "check", "passed.json"),
): { all: string[]; changed: string[]; keep: (ran: string[], passed: string[]) => void } {
  const before = keysOfTests(root);
  const kept: Record<string, string> = existsSync(keptIn) ? JSON.parse(readFileSync(keptIn, "utf8")) : {};
  return {
    all: [...before.keys()],
    changed: [...before].filter(([test, key]) => kept[test] !== key).map(([test]) => test),
    keep(ran, passed) {
      // What was edited while tests ran counts as not run.
      const after = keysOfTests(root);
      const held = [...after].filter(([test, key]) =>
        ran.includes(test) ? passed.includes(test) && before.get(test) === key : kept[test] === key,
      );
      mkdirSync(dirname(keptIn), { recursive: true });
      writeFileSync(keptIn, JSON.stringify(Object.fromEntries(held)));
    },
  };
}

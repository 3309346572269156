import { JobError } from "../../host.ts";
import { present, procfileWeb, textOf, type Overrides, type Sources } from "./sources.ts";

export type GoPlan = {
  kind: "go";
  manifests: string[];
  /** Dependencies lie in vendor/. */
  vendored: boolean;
  /** Modules are downloaded before the source is copied. */
  downloads: boolean;
  /** The package that is built, such as ./cmd/web; null when buildCommand builds. */
  main: string | null;
  buildCommand: string | null;
  startCommand: string;
};

/** The program that a plan without a buildCommand builds. */
export const goProgram = "/usr/local/bin/app";

export function detectGo(sources: Sources, overrides: Overrides): GoPlan | null {
  if (!sources.files.has("go.mod")) return null;
  const { buildCommand } = overrides;
  const given = overrides.startCommand ?? procfileWeb(sources);
  if (buildCommand !== null && given === null)
    throw new JobError(
      "buildCommand is set for a Go repository: set startCommand to the program it makes, too.",
    );
  const vendored = sources.files.has("vendor/");
  const local = /=>\s*\.{1,2}\//.test(textOf(sources, "go.mod"));
  return {
    kind: "go",
    manifests: present(sources, ["go.mod", "go.sum"]),
    vendored,
    downloads: !vendored && !local && sources.files.has("go.sum"),
    main: buildCommand === null ? mainPackage(sources) : null,
    buildCommand,
    startCommand: given ?? goProgram,
  };
}

function mainPackage(sources: Sources): string {
  const mains = [...sources.texts]
    .filter(([file, text]) => /^(?:cmd\/[\w.-]+\/)?[\w.-]+\.go$/.test(file) && isMain(file, text))
    .map(([file]) => `./${file.slice(0, file.lastIndexOf("/") + 1)}`.replace(/(.)\/$/, "$1"));
  const packages = [...new Set(mains)];
  if (packages.includes(".")) return "./";
  if (packages.length === 1 && packages[0] !== undefined) return packages[0];
  throw new JobError(
    packages.length === 0
      ? "Found go.mod, but no program: put package main into the root or into a folder of cmd/, or set buildCommand and startCommand."
      : "cmd/ holds more than one program: set buildCommand to build one of them, and startCommand to start it.",
  );
}

const isMain = (file: string, text: string): boolean =>
  !file.endsWith("_test.go") && /^package main\b/m.test(text) && !/^\/\/go:build ignore\b/m.test(text);

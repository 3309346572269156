import { posix } from "node:path";
import { JobError } from "../../job.ts";
import { notByItself } from "./not-found.ts";
import {
  placeOf,
  present,
  procfileWeb,
  textOf,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

export type GoPlan = Place & {
  kind: "go";
  /** Such as 1.24; null: the newest, or what go.mod asks for. */
  version: string | null;
  manifests: string[];
  /** Dependencies lie in vendor/. */
  vendored: boolean;
  /** Modules are downloaded before the source is copied. */
  downloads: boolean;
  /** A module is made of C, too. */
  needsC: boolean;
  /** The package that is built, such as ./cmd/web, or its files; null when buildCommand builds. */
  main: string | null;
  /** The file that it is built to: an absolute path, or one below the app's folder. */
  program: string;
  buildCommand: string | null;
  startCommand: string;
};

/** Programs with these are built without C, and fail when they start. */
const madeOfC =
  /github\.com\/(?:mattn\/go-sqlite3|confluentinc\/confluent-kafka-go|marcboeker\/go-duckdb|duckdb\/duckdb-go|chai2010\/webp|kolesa-team\/go-webp)\b/;

const programs = "/usr/local/bin";
const usualProgram = `${programs}/app`;

/** What a command starts, by a relative path or a name, after variables that it sets. */
const startedProgram = /^(?:(?:exec|env|\w+=\S*) +)*((?:\.\/)?[\w-][\w.-]*(?:\/[\w-][\w.-]*)*)(?= |$)/;

/** `go run`, with the package or files and the program's arguments: the image has no compiler, so they are built beforehand. */
const goRun = /^(?:exec )?go run (\.[\w./-]*|[\w./-]+\.go(?: [\w./-]+\.go)*)((?: .*)?)$/;

export function detectGo(sources: Sources, overrides: Overrides): GoPlan | null {
  const isModule = sources.files.has("go.mod");
  if (!isModule && !sources.files.has("go.work") && looseFiles(sources).length === 0) return null;
  const { buildCommand } = overrides;
  const given = overrides.startCommand ?? procfileWeb(sources);
  if (buildCommand !== null && given === null)
    throw new JobError(
      "buildCommand is set for a Go repository: also set startCommand to the program it builds.",
    );
  const [, runs, args] = (buildCommand === null && goRun.exec(given ?? "")) || [];
  const vendored = sources.files.has("vendor/");
  const { within } = placeOf(sources);
  const local = /=>\s*\.{1,2}\//.test(textOf(sources, "go.mod"));
  return {
    kind: "go",
    version: null,
    within,
    // Those of a workspace name folders, which are not there yet.
    manifests: isModule ? present(sources, ["go.mod", "go.sum"]) : [],
    vendored,
    downloads: isModule && !vendored && !local && within === null && sources.files.has("go.sum"),
    needsC: madeOfC.test(textOf(sources, "go.mod")),
    ...(buildCommand === null && runs === undefined
      ? programOf(sources, startedProgram.exec(given ?? "")?.[1] ?? "")
      : { main: runs ?? null, program: usualProgram }),
    buildCommand,
    startCommand: runs === undefined ? (given ?? usualProgram) : `${usualProgram}${args}`,
  };
}

/** A command may start the program as Go names it (`web`), or where a build by hand leaves it (`bin/web`, `./server`). */
function programOf(sources: Sources, started: string): Pick<GoPlan, "main" | "program"> {
  const name = posix.basename(started);
  const main = mainPackage(sources, name);
  if (!started.includes("/"))
    return { main, program: started === nameOf(sources, main) ? `${programs}/${name}` : usualProgram };
  const program = posix.normalize(started);
  const isThere = sources.files.has(program) || sources.files.has(`${program}/`);
  return { main, program: isThere ? usualProgram : program };
}

/** What `go install` calls the program of a package, or of files. */
const nameOf = (sources: Sources, main: string): string =>
  main === "./"
    ? posix.basename(
        /^module[ \t]+"?([^\s"]+?)(?:\/v\d+)?"?[ \t]*$/m.exec(textOf(sources, "go.mod"))?.[1] ?? "",
      )
    : posix.basename(main.split(" ")[0] ?? "", ".go");

/** Files of a program that is no module: what it imports is Go's own. */
const looseFiles = ({ files, texts }: Sources): string[] =>
  files.has("go.mod") || files.has("go.work")
    ? []
    : [...texts].flatMap(([file, text]) => (/^\w[\w.-]*\.go$/.test(file) && isMain(file, text) ? file : []));

const inCmd = /^\.\/cmd\b/;
const isUsual = (folder: string): boolean => folder === "." || inCmd.test(folder);

/** The folders of programs, apart from files with such build constraints. */
const packagesOf = ({ texts }: Sources, without: RegExp): string[] =>
  [...texts]
    .filter(([file, text]) => file.endsWith(".go") && isMain(file, text, without))
    .map(([file]) => `./${file.slice(0, file.lastIndexOf("/") + 1)}`.replace(/(.)\/$/, "$1"));

/** The one of that name, or the only one. */
function mainPackage(sources: Sources, name: string): string {
  const loose = looseFiles(sources);
  if (loose.length > 0) return loose.join(" ");
  const mains = packagesOf(sources, leftOut);
  const tagged = mains.some(isUsual) ? [] : packagesOf(sources, neverBuilt);
  const all = [...new Set([...mains, ...(mains.length === 0 ? tagged : tagged.filter(isUsual))])];
  const isRoot = all.includes(".") && nameOf(sources, "./") === name;
  const named = isRoot ? [] : all.filter((one) => posix.basename(one) === name);
  if (named.length === 1 && named[0] !== undefined) return named[0];
  if (all.includes(".")) return "./";
  const commands = all.filter((one) => inCmd.test(one));
  const packages = commands.length > 0 ? commands : all;
  if (packages.length === 1 && packages[0] !== undefined) return packages[0];
  // Hugo has themes by modules of Go's.
  const other = packages.length === 0 ? notByItself(sources) : null;
  if (other !== null) throw other;
  throw new JobError(
    packages.length === 0
      ? "Found a Go module or workspace, but no program: put package main in the root, in a folder of cmd/ or in another folder's main.go, or set buildCommand and startCommand."
      : `Found more than one program (${packages.slice(0, 5).join(", ")}): set buildCommand to build one of them, such as go build -o app ${packages[0]}, and startCommand to start it, such as ./app.`,
  );
}

/** Build constraints that name nothing a build for Linux has, such as those of Mage, of generators and of WebAssembly. */
const leftOut = /^\/\/(?:go:build|[ \t]*\+build)[ \t](?!.*(?:!|\b(?:linux|unix|amd64|arm64|cgo|gc|go1)\b))/m;

const otherSystems =
  "aix|android|darwin|dragonfly|freebsd|illumos|ios|js|netbsd|openbsd|plan9|solaris|wasip1|wasm|windows";
const ofOther = new RegExp(`_test\\.go$|[^/]_(?:${otherSystems})(?:_(?:386|amd64|arm|arm64|wasm))?\\.go$`);
/** Unlike a tag of its own, which GOFLAGS may set. */
const neverBuilt = new RegExp(
  `^//(?:go:build|[ \\t]*\\+build)[ \\t].*\\b(?:ignore|mage|generate|tools|${otherSystems})\\b`,
  "m",
);

function isMain(file: string, text: string, without = leftOut): boolean {
  const head = text.search(/^package main\b/m);
  return head !== -1 && !ofOther.test(file) && !without.test(text.slice(0, head));
}

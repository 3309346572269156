import { forBrowsers, notByItself } from "./not-found.ts";
import {
  placeOf,
  present,
  procfileWeb,
  textOf,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

export type RustPlan = Place & {
  kind: "rust";
  /** Such as 1.85; null: the newest, or what rust-toolchain.toml asks for. */
  version: string | null;
  /** The program that is started; null where only the build tells, by making one alone. */
  program: string | null;
  locked: boolean;
  /** What SQLx's macros ask of a database while they compile lies in the repository. */
  asksNoDatabase: boolean;
  /** Debian packages that crates are compiled with. */
  compiledWith: string[];
  /** Debian packages with the libraries that the program is linked to. */
  libraries: string[];
  buildCommand: string | null;
  /** null: the program is. */
  startCommand: string | null;
  /** What frameworks read that listen on an address of their own. */
  listens: string | null;
};

const librariesOf: [name: string, packages: string[]][] = [
  ["openssl-sys", ["libssl3"]],
  ["pq-sys", ["libpq5"]],
  ["mysqlclient-sys", ["libmariadb3"]],
  ["libsqlite3-sys", ["libsqlite3-0"]],
];

/** Of what the image with the compiler lacks. */
const compiledWith: typeof librariesOf = [
  ["prost-build", ["protobuf-compiler"]],
  ["clang-sys", ["libclang-dev"]],
];

/** @throws JobError where what Cargo compiles is for browsers, and nothing starts a server */
export function demandNoBrowserApp(sources: Sources, { startCommand }: Overrides): void {
  const isOfCargo = sources.files.has("Cargo.toml");
  const isStarted = startCommand !== null || procfileWeb(sources) !== null;
  const refusal = isOfCargo && !isStarted ? notByItself(sources, forBrowsers) : null;
  if (refusal !== null) throw refusal;
}

export function detectRust(sources: Sources, overrides: Overrides): RustPlan | null {
  if (!sources.files.has("Cargo.toml")) return null;
  const manifest = textOf(sources, "Cargo.toml");
  const root = sources.repository?.root ?? sources;
  const lock = textOf(root, "Cargo.lock");
  const isUsed = (name: string): boolean => lock.includes(`name = "${name}"`);
  const packagesOf = (list: typeof librariesOf): string[] =>
    list.flatMap(([name, packages]) => (isUsed(name) ? packages : []));
  return {
    kind: "rust",
    version: null,
    ...placeOf(sources),
    program: programOf(sources, manifest),
    locked: root.files.has("Cargo.lock"),
    asksNoDatabase: [sources, root].some((one) => present(one, [".sqlx/", "sqlx-data.json"]).length > 0),
    compiledWith: packagesOf(compiledWith),
    libraries: packagesOf(librariesOf),
    buildCommand: overrides.buildCommand,
    startCommand: overrides.startCommand ?? procfileWeb(sources),
    listens:
      isUsed("rocket") || /^rocket\b/m.test(manifest) ? "ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT" : null,
  };
}

/** The lines of a table of Cargo.toml, and of each one of a list of tables. */
function tables(manifest: string, header: string): string[] {
  const found: string[][] = [];
  let current: string[] | null = null;
  for (const line of manifest.split("\n"))
    if (line.trimStart().startsWith("[")) {
      current = line.split("#", 1)[0]?.trim() === header ? [] : null;
      if (current !== null) found.push(current);
    } else current?.push(line);
  return found.map((lines) => lines.join("\n"));
}

const nameIn = (table: string, key = "name"): string | undefined =>
  new RegExp(`^[ \\t]{0,20}${key}[ \\t]{0,20}=[ \\t]{0,20}["']([\\w-]{1,100})["']`, "m").exec(table)?.[1];

/** Whether a [[bin]] is not of src/main.rs, of which Cargo makes a program as well. */
function isOther(table: string, { files }: Sources): boolean {
  const path = /^[ \t]{0,20}path[ \t]{0,20}=[ \t]{0,20}["'](?:\.\/)?([^"']{1,200})["']/m.exec(table)?.[1];
  const inferred = `src/bin/${nameIn(table)}`;
  return path === undefined
    ? files.has(`${inferred}.rs`) || files.has(`${inferred}/`)
    : path !== "src/main.rs";
}

/** Whether Cargo looks for programs by itself, too; of old, not beside those that are listed. */
const findsPrograms = (package_: string, listed: string[]): boolean => {
  const asked = /^[ \t]{0,20}autobins[ \t]{0,20}=[ \t]{0,20}(true|false)/m.exec(package_)?.[1];
  const isOfOld = !/^[ \t]{0,20}edition\b(?![ \t]{0,20}=[ \t]{0,20}["']2015)/m.test(package_);
  return asked === undefined ? listed.length === 0 || !isOfOld : asked === "true";
};

function programOf(sources: Sources, manifest: string): string | null {
  const [package_ = ""] = tables(manifest, "[package]");
  const listed = tables(manifest, "[[bin]]");
  const isThere = sources.files.has("src/main.rs");
  const hasMain = isThere && findsPrograms(package_, listed);
  const own = isThere ? listed.filter((table) => !isOther(table, sources)) : [];
  const bins = own.length === 0 && !hasMain ? listed : own;
  return (
    nameIn(package_, "default-run") ??
    (bins.length === 1 ? nameIn(bins[0] ?? "") : undefined) ??
    (hasMain && bins.length === 0 ? nameIn(package_) : undefined) ??
    null
  );
}

import { JobError } from "../../job.ts";
import { textOf, type Sources } from "./sources.ts";

type Other = [sign: RegExp, what: string, how?: string, text?: RegExp];
/** A Dockerfile, a line after each semicolon. */
const servedAfter = (image: string, build: string, folder: string): string =>
  ` with a line for each of these: FROM ${image} AS build; USER root; WORKDIR /site; COPY . .; RUN ${build}; FROM caddy:2; COPY --from=build /site/${folder} /srv; CMD caddy file-server --root /srv --listen :$PORT (Builds in the manual has them line by line)`;
const zola = servedAfter("ghcr.io/getzola/zola:v0.22.1", '["zola", "build"]', "public");
const mdBook = servedAfter("rust:1", "cargo install mdbook && mdbook build --dest-dir /site/book", "book");

/** What we do not build by ourselves, by a file at its root, how else than by a Dockerfile it is built, and what that file says. */
const others: Other[] = [
  // Its own package.yaml lies beside it.
  [/^(?:stack\.yaml|cabal\.project|[\w.-]+\.cabal)$/, "Haskell"],
  [/^package\.(?:json5|yaml)$/, "pnpm's own form of a manifest", ", or write package.json in its place"],
  [/^build\.sbt$/, "Scala"],
  [/^(?:project\.clj|deps\.edn)$/, "Clojure"],
  [/^gleam\.toml$/, "Gleam"],
  [/^build\.zig$/, "Zig"],
  [/^shard\.yml$/, "Crystal"],
  [/^(?:CMakeLists\.txt|meson\.build|configure\.ac)$/, "C++"],
  [/^[\w.-]+\.(?:cbl|cob|cobol)$/, "COBOL"],
  [/^pubspec\.yaml$/, "Dart"],
  [/^Package\.swift$/, "Swift"],
  [
    /^wrangler\.(?:toml|jsonc?)$/,
    "a Cloudflare Worker",
    ', or a "start" script that starts a server (wrangler dev is for development only)',
  ],
  [/^zola\.toml$/, "Zola", zola],
  [/^config\.toml$/, "Zola", zola, /^base_url[ \t]*=/m],
  [/^src\/SUMMARY\.md$/, "mdBook", mdBook],
  [
    /^(?:hugo\.(?:toml|ya?ml|json)|archetypes\/)$/,
    "Hugo",
    servedAfter("ghcr.io/gohugoio/hugo", "hugo --minify", "public"),
  ],
];
/** What Cargo alone compiles, but to a program that serves nothing. */
export const forBrowsers: Other[] = [
  [
    /^Cargo\.toml$/,
    "Leptos",
    " that builds it with cargo leptos build --release, or set startCommand",
    /^\[\[?(?:package|workspace)\.metadata\.leptos\]/m,
  ],
  [/^Dioxus\.toml$/, "Dioxus", " that builds it with dx bundle --platform web, or set startCommand"],
  [
    /^Trunk\.toml$/,
    "what Trunk bundles for browsers",
    servedAfter(
      "rust:1",
      "rustup target add wasm32-unknown-unknown && cargo install --locked trunk && trunk build --release",
      "dist",
    ),
  ],
];
export const conda: Other = [
  /^environment\.ya?ml$/,
  "a conda environment",
  ", or a requirements.txt in its place",
];
/** As often beside an app of another language, whose documentation or tools it is. */
const besides: Other[] = [
  [/^book\.toml$/, "mdBook", mdBook],
  [/^mkdocs\.yml$/, "MkDocs", ", or a requirements.txt that names mkdocs, its theme and its plugins"],
  conda,
];
const compose = /^(?:docker-)?compose\.ya?ml$/;
const dockerfile = /^(?:\w[\w.-]*\/){0,2}(?:[Dd]ockerfile(?:\.[\w-]+)?|Containerfile)$|^[\w-]+\.Dockerfile$/;
const app =
  /^((?:[\w@+-][\w.@+-]*\/){1,2})(?:[Dd]ockerfile|package\.json|requirements\.txt|pyproject\.toml|Pipfile|go\.mod|composer\.json|Gemfile|Cargo\.toml|mix\.exs|deno\.jsonc?|[\w.-]+\.(?:csproj|fsproj)|pom\.xml|build\.gradle(?:\.kts)?|index\.(?:html|php))$/;
const mostNamed = 5;

const nothing =
  "Found neither a Dockerfile, nor a package.json, nor the files of an app in Python, Go, PHP, Ruby, Java, .NET, Rust, Elixir or Deno, nor a Procfile or start.sh, nor an index.html: add one of them, set startCommand, or set rootDir to the folder that contains it.";

/** Why what a file says it is is not built by ourselves, and what to do; null where none says so. */
export function notByItself(sources: Sources, signs = others): JobError | null {
  const paths = [...sources.files];
  for (const [sign, what, how = "", text] of signs) {
    const file = paths.find((path) => sign.test(path));
    if (file !== undefined && (text === undefined || text.test(textOf(sources, file))))
      return new JobError(`Found ${file}: ${what} is not built without a Dockerfile. Add one${how}.`);
  }
  return null;
}

/** Why a repository is none that we build, and what to do. */
export function notFound(sources: Sources): JobError {
  const { files } = sources;
  // With one, only a setting brings us here.
  if (files.has("Dockerfile") || files.has("dockerfile"))
    return new JobError(
      "builder is detect, so the Dockerfile is not read, and no other file says how to build this: remove builder, or set startCommand.",
    );
  const paths = [...files];
  const dockerfiles = paths.filter((path) => dockerfile.test(path));
  if (dockerfiles.length > 0)
    return new JobError(
      `Found no Dockerfile at the root, but ${named(dockerfiles)}: set rootDir to the folder of one, or dockerfilePath where it is built from the root.`,
    );
  const other = notByItself(sources);
  if (other !== null) return other;
  const apps = appsBelow(paths);
  if (apps !== null)
    return new JobError(`Found no app at the root, but in ${apps}: set rootDir to the folder to build.`);
  const alone = notByItself(sources, besides);
  if (alone !== null) return alone;
  const file = paths.find((path) => compose.test(path));
  return new JobError(
    file === undefined
      ? nothing
      : `Found ${file}, which is not read: create a site for each of its services that visitors reach, with its Dockerfile or its image, and a database for each PostgreSQL, MySQL, MariaDB and Redis, linked to the site.`,
  );
}

/** The folders that look like apps, for a sentence; null where there are none. */
export function appsBelow(paths: readonly string[]): string | null {
  const outer = appFolders(paths);
  return outer.length === 0 ? null : named(outer);
}

export function appFolders(paths: readonly string[]): string[] {
  const folders = [...new Set(paths.flatMap((path) => app.exec(path)?.[1]?.replace(/\/$/, "") ?? []))];
  const all = new Set(folders);
  // They lie two levels deep at most.
  return folders.filter((one) => !one.includes("/") || !all.has(one.slice(0, one.indexOf("/"))));
}

/** Some of them, for a sentence. */
export const named = (paths: readonly string[]): string =>
  paths.slice(0, mostNamed).join(", ") + (paths.length > mostNamed ? " and others" : "");

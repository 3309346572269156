import { JobError } from "../../job.ts";
import { buildScriptOf, type PackageJson } from "./package-json.ts";
import {
  placeOf,
  present,
  procfileWeb,
  servedFolder,
  textOf,
  toolVersion,
  type Overrides,
  type Place,
  type Sources,
  type SystemPackages,
} from "./sources.ts";

export type RubyPlan = Place & {
  kind: "ruby";
  /** Such as 3.3, or 3.3.1 where Bundler takes no other; null when any will do. */
  version: string | null;
  manifests: string[];
  /** The lines of the one that it has in place of its own; null where it has its own. */
  gemfile: string[] | null;
  needsSource: boolean;
  locked: boolean;
  /** The lock file is for other platforms only, for which Bundler refuses it. */
  addsPlatform: boolean;
  hasGems: boolean;
  /** A gem runs JavaScript, also while the app starts. */
  needsNode: boolean;
  /** Its own build bundles what Node is for, with the packages of package.json. */
  packsByNode: boolean;
  packages: SystemPackages;
  buildCommand: string | null;
  /** null: the build makes a folder of files, which is served. */
  startCommand: string | null;
  output: string;
  singlePage?: boolean;
};

/** What GitHub Pages builds with, on its version of Ruby. */
const gitHubPages = ['source "https://rubygems.org"', 'gem "github-pages", group: :jekyll_plugins'];
const gitHubRuby = "3.3";

/** What GitHub Pages publishes needs no Gemfile. */
function isOfGitHubPages(sources: Sources, overrides: Overrides, manifest: PackageJson | null): boolean {
  const { files } = sources;
  return (
    !files.has("Gemfile") &&
    files.has("_config.yml") &&
    (files.has("_layouts/") || files.has("_posts/")) &&
    !files.has(".nojekyll") &&
    overrides.startCommand === null &&
    overrides.buildCommand === null &&
    procfileWeb(sources) === null &&
    (manifest === null || buildScriptOf(manifest) === null) &&
    (overrides.outputDir ?? "_site") === "_site"
  );
}

export function detectRuby(
  repository: Sources,
  overrides: Overrides,
  manifest: PackageJson | null,
): RubyPlan | null {
  const isMade = isOfGitHubPages(repository, overrides, manifest);
  const sources = isMade
    ? { ...repository, texts: new Map([...repository.texts, ["Gemfile", gitHubPages.join("\n")]]) }
    : repository;
  if (!isMade && !sources.files.has("Gemfile")) return null;
  const gemfile = textOf(sources, "Gemfile");
  const rails = sources.files.has("bin/rails");
  const served = servedFolder(overrides);
  const startCommand =
    served === null ? (overrides.startCommand ?? procfileWeb(sources) ?? startOf(sources, rails)) : null;
  const jekyll = startCommand === null ? buildJekyll(sources) : null;
  if (startCommand === null && jekyll === null && served === null)
    throw new JobError(
      "Found a Gemfile, but not what starts the app: no Procfile, bin/rails, config.ru or app.rb of Sinatra, and no Jekyll. Add one, or set startCommand.",
    );
  const { within } = placeOf(sources);
  const addsPlatform = isForOthers(textOf(sources, "Gemfile.lock"));
  return {
    kind: "ruby",
    version: versionOf(sources) ?? (isMade ? gitHubRuby : null),
    gemfile: isMade ? gitHubPages : null,
    within,
    manifests: present(sources, ["Gemfile", "Gemfile.lock", ".ruby-version", ".tool-versions"]),
    needsSource:
      within !== null ||
      // It changes the lock file, which the source would bring again.
      addsPlatform ||
      /\bpath:|:path\s*=>|\bgemspec\b|\beval_gemfile\b/.test(gemfile) ||
      sources.files.has("vendor/cache/"),
    locked: sources.files.has("Gemfile.lock"),
    addsPlatform,
    hasGems: /^[ \t]*(?:gem|gemspec|eval_gemfile)\b/m.test(gemfile),
    // GitHub's gem brings CoffeeScript.
    needsNode: ["execjs", "github-pages"].some((gem) => uses(sources, gem)) && !uses(sources, "mini_racer"),
    packsByNode: packs(sources),
    packages: systemPackages(sources),
    buildCommand: overrides.buildCommand ?? jekyll ?? (rails ? precompile(sources) : null),
    startCommand,
    output: served ?? "_site",
  };
}

function buildJekyll(sources: Sources): string | null {
  const build = "JEKYLL_ENV=production bundle exec jekyll build";
  if (uses(sources, "github-pages") && sources.files.has("_config.yml"))
    return `${outsideGitHub}${build} --config /tmp/url.yml,_config.yml`;
  return uses(sources, "jekyll") || uses(sources, "github-pages") ? build : null;
}

/** GitHub's plug-in fails where it knows no repository, and would take that one's address for the site's: nobody can have this one. */
const outsideGitHub =
  "grep -q '^repository:' _config.yml || export PAGES_REPO_NWO=${PAGES_REPO_NWO:--none/-none.github.io}; echo \"url: ''\" > /tmp/url.yml; ";

function startOf(sources: Sources, rails: boolean): string | null {
  // A container that is started again still has the file, and a process of that number.
  if (rails) return "rm -f tmp/pids/server.pid; exec bin/rails server -b 0.0.0.0 -p $PORT";
  if (!sources.files.has("config.ru")) return startSinatra(sources);
  return uses(sources, "puma")
    ? "bundle exec puma -b tcp://0.0.0.0:$PORT"
    : "bundle exec rackup -o 0.0.0.0 -p $PORT";
}

/** An app of one file takes these options itself. */
function startSinatra(sources: Sources): string | null {
  const [app] = uses(sources, "sinatra") ? present(sources, ["app.rb", "main.rb", "server.rb"]) : [];
  return app === undefined ? null : `bundle exec ruby ${app} -o 0.0.0.0 -p $PORT`;
}

function versionOf(sources: Sources): string | null {
  const gemfile = textOf(sources, "Gemfile");
  const text = textOf(sources, ".ruby-version") || toolVersion(sources, "ruby");
  const file = /^\s*(?:ruby-)?(\d\.\d+)(\.\d+)?/.exec(text);
  if (file?.[1] !== undefined && /^[ \t]*ruby[ \t(]+(?:file:|:file\b)/m.test(gemfile))
    return file[1] + (file[2] ?? "");
  const demanded = /^[ \t]*ruby[ \t(]+["'](\d\.\d+\.\d+)["']/m.exec(gemfile)?.[1];
  const inGemfile = /^[ \t]*ruby[ \t(]+["']\D{0,3}(\d\.\d+)/m.exec(gemfile)?.[1];
  return demanded ?? file?.[1] ?? inGemfile ?? null;
}

function isForOthers(lock: string): boolean {
  const platforms = /^PLATFORMS\r?\n((?:  \S+\r?\n)+)/m.exec(lock)?.[1];
  return platforms !== undefined && !/^  (?:ruby|\S*linux\S*)\r?$/m.test(platforms);
}

const uses = (sources: Sources, gem: string): boolean =>
  new RegExp(`^ {4}${gem} \\(`, "m").test(textOf(sources, "Gemfile.lock")) ||
  new RegExp(`^[ \\t]*gem ["']${gem}["']`, "m").test(textOf(sources, "Gemfile"));

const packs = (sources: Sources): boolean =>
  ["webpacker", "shakapacker", "vite_ruby"].some((gem) => uses(sources, gem));

/** A dummy key serves while assets are made, of which Rails before 7.1 has none; what is bundled by Node was made before, or is installed. */
const precompile = (sources: Sources): string | null =>
  uses(sources, "sprockets-rails") || uses(sources, "propshaft") || packs(sources)
    ? "SECRET_KEY_BASE_DUMMY=1 SECRET_KEY_BASE=${SECRET_KEY_BASE:-dummy} SKIP_JS_BUILD=1 SKIP_CSS_BUILD=1 VITE_RUBY_SKIP_ASSETS_PRECOMPILE_INSTALL=true bundle exec rails assets:precompile"
    : null;

function systemPackages(sources: Sources): SystemPackages {
  const found = [
    { gem: "pg", build: ["libpq-dev"], run: ["libpq5"] },
    { gem: "mysql2", build: ["default-libmysqlclient-dev"], run: ["libmariadb3"] },
    { gem: "ruby-vips", build: [], run: ["libvips"] },
    { gem: "rmagick", build: ["libmagickwand-dev"], run: ["libmagickwand-6.q16-6"] },
  ].filter(({ gem }) => uses(sources, gem));
  return {
    build: ["build-essential", "git", "libyaml-dev", "pkg-config", ...found.flatMap(({ build }) => build)],
    run: found.flatMap(({ run }) => run),
  };
}

import { posix } from "node:path";
import { JobError } from "../../job.ts";
import { drupalFolder, readComposerJson, scriptsOf, type ComposerJson } from "./composer.ts";
import { newestMinor } from "./newest-minor.ts";
import { buildRunsPhp, type PackageJson } from "./package-json.ts";
import {
  placeOf,
  present,
  procfileWeb,
  textOf,
  toolVersion,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

export type PhpPlan = Place & {
  kind: "php";
  /** Such as 8.3; null when any will do. */
  version: string | null;
  /** What Composer is asked for: the packages that composer.json requires, or its autoloader only. */
  composer: "install" | "autoload" | null;
  /** Composer is asked for the files that Drupal has in the folder that is served. */
  isScaffolded: boolean;
  manifests: string[];
  /** composer.json names folders of the repository, which are installed. */
  needsSource: boolean;
  /** Extensions that are compiled, as the image lacks them, and what they are compiled with. */
  extensions: string[];
  /** Others that PECL has. */
  peclExtensions: string[];
  /** Debian's, for both. */
  extensionPackages: string[];
  /** Those that are required and cannot be had. */
  lacking: string[];
  /** Symfony is told here that it is in production: the .env of its template says it is not. */
  symfony: boolean;
  /** The build script of package.json runs PHP. */
  assetsNeedPhp: boolean;
  buildCommand: string | null;
  startCommand: string;
};

/** Extensions of PHP's own source that the image is built without. */
const extensionPackages: Record<string, string[]> = {
  bcmath: [],
  bz2: ["libbz2-dev"],
  calendar: [],
  exif: [],
  ffi: ["libffi-dev"],
  gd: ["libfreetype-dev", "libjpeg62-turbo-dev", "libpng-dev", "libwebp-dev"],
  gettext: [],
  gmp: ["libgmp-dev"],
  intl: ["libicu-dev"],
  ldap: ["libldap2-dev"],
  mysqli: [],
  pcntl: [],
  pdo_mysql: [],
  pdo_pgsql: ["libpq-dev"],
  pgsql: ["libpq-dev"],
  shmop: [],
  soap: ["libxml2-dev"],
  sockets: [],
  sysvmsg: [],
  sysvsem: [],
  sysvshm: [],
  tidy: ["libtidy-dev"],
  xsl: ["libxslt1-dev"],
  zip: ["libzip-dev"],
};

/** Of the databases that a host has. Frameworks require none of them, as they can do with any. */
export const phpDrivers = ["mysqli", "pdo_mysql", "pdo_pgsql"];
export const peclDrivers = ["redis"];

const peclPackages: Record<string, string[]> = {
  apcu: [],
  igbinary: [],
  imagick: ["libmagickwand-dev"],
  memcached: ["libmemcached-dev", "libssl-dev", "zlib1g-dev"],
  mongodb: ["libssl-dev"],
  msgpack: [],
  redis: [],
};
/** Debian's packages that an extension is compiled with, of all that can be had. */
const packagesOf = { ...extensionPackages, ...peclPackages };
const inImage = new Set(
  "ctype curl date dom fileinfo filter ftp hash iconv json libxml mbstring mysqlnd opcache openssl pcre pdo pdo_sqlite phar posix random readline reflection session simplexml sodium spl sqlite3 standard tokenizer xml xmlreader xmlwriter zend-opcache zlib".split(
    " ",
  ),
);

/** Starts Apache on a folder of the app. */
export const phpServer = "serve-php";

/** The folder that one of Heroku's servers, which is only there, is to serve; null for another command. */
function servedByHeroku(command: string | null): string | null {
  const [program = "", ...args] = (command ?? "").split(/\s+/);
  if (!/^(?:vendor\/bin\/)?heroku-php-(?:apache2|nginx)$/.test(program)) return null;
  const folder = args.at(-2)?.startsWith("-") ? "" : (args.at(-1) ?? "");
  return /^\w[\w./-]*$/.test(folder) ? folder.replace(/\/$/, "") : ".";
}

export function detectPhp(
  sources: Sources,
  overrides: Overrides,
  manifest: PackageJson | null,
): PhpPlan | null {
  const { files } = sources;
  const page = present(sources, [
    "public/index.php",
    "web/index.php",
    "htdocs/index.php",
    "www/index.php",
    "index.php",
  ])[0];
  if (page === undefined && !files.has("composer.json")) return null;
  const composer = readComposerJson(textOf(sources, "composer.json"));
  const drupal = drupalFolder(composer);
  const served = servedByHeroku(procfileWeb(sources));
  const given = overrides.startCommand ?? (served === null ? procfileWeb(sources) : null);
  const documentRoot = served ?? drupal ?? (page === undefined ? null : posix.dirname(page));
  if (documentRoot === null && given === null)
    throw new JobError(
      "Found composer.json, but no index.php in public/, web/, htdocs/, www/ or at the root: add one, or set startCommand.",
    );
  const { require, autoload, config, repositories } = composer;
  const required = Object.keys(require ?? {});
  const wanted = new Set([...phpDrivers, ...extensionsOf([...required, ...lockedRequirements(sources)])]);
  const extensions = Object.keys(extensionPackages).filter((name) => wanted.has(name));
  const peclExtensions = Object.keys(peclPackages).filter(
    (name) => wanted.has(name) && !peclDrivers.includes(name),
  );
  const { within } = placeOf(sources);
  return {
    kind: "php",
    version:
      versionOf(config?.platform?.php) ?? versionOf(toolVersion(sources, "php")) ?? versionOf(require?.php),
    composer: required.some(isPackage) ? "install" : autoload === undefined ? null : "autoload",
    isScaffolded: drupal !== null,
    extensions,
    peclExtensions,
    extensionPackages: [
      ...new Set([...extensions, ...peclExtensions].flatMap((name) => packagesOf[name] ?? [])),
    ],
    lacking: extensionsOf(required).filter((name) => !inImage.has(name) && !Object.hasOwn(packagesOf, name)),
    symfony: required.includes("symfony/framework-bundle"),
    within,
    manifests: present(sources, ["composer.json", "composer.lock"]),
    needsSource: within !== null || namesFolders(repositories),
    assetsNeedPhp: manifest !== null && buildRunsPhp(manifest),
    buildCommand: overrides.buildCommand ?? afterInstall(composer, required),
    startCommand: given ?? `${phpServer} ${documentRoot}`,
  };
}

/** What makes an app's files of its packages: PHP's part of Composer's scripts, and Symfony's assets. Null: nothing. */
function afterInstall(composer: ComposerJson, required: readonly string[]): string | null {
  const scripts = required.some(isPackage) ? scriptsOf(composer) : [];
  const assets = required.includes("symfony/asset-mapper")
    ? [
        "importmap:install",
        ...(required.includes("symfonycasts/sass-bundle") ? ["sass:build"] : []),
        ...(required.includes("symfonycasts/tailwind-bundle") ? ["tailwind:build --minify"] : []),
        "asset-map:compile",
      ].map((command) => `php bin/console ${command}`)
    : [];
  const commands = [...scripts.filter((one) => !assets.includes(one)), ...assets];
  return commands.length === 0 ? null : commands.join(" && ");
}

const extensionsOf = (required: readonly string[]): string[] =>
  required.flatMap((name) => /^ext-([\w-]{1,40})$/.exec(name)?.[1]?.toLowerCase() ?? []);

/** What the packages require that are installed. */
function lockedRequirements(sources: Sources): string[] {
  try {
    const { packages } = JSON.parse(textOf(sources, "composer.lock")) as { packages: { require?: object }[] };
    return packages.flatMap(({ require }) => Object.keys(require ?? {}));
  } catch {
    // None, or longer than what is read of a file: Composer says what is wrong with it.
    return [];
  }
}

/** Composer's `~8.1` allows 8.2, as its `^8.1` does. */
const versionOf = (range: unknown): string | null =>
  typeof range === "string" && range.length <= 100
    ? newestMinor(range.replaceAll(/~\s*(\d+\.\d+)(?![.\d])/g, "^$1"), [8, 7])
    : null;

/** PHP itself and its extensions are none. */
const isPackage = (name: string): boolean => !/^(?:php|ext-.*|lib-.*)$/.test(name);

/** A list, or an object by any names. */
const namesFolders = (repositories: unknown): boolean =>
  Object.values(repositories ?? {}).some((one: { type?: unknown } | null) =>
    ["path", "artifact"].includes(String(one?.type)),
  );

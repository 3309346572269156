import { JobError } from "../../host.ts";
import { newestMinor } from "./newest-minor.ts";
import { procfileWeb, textOf, type Overrides, type Sources } from "./sources.ts";

export type PhpPlan = {
  kind: "php";
  /** Such as 8.3; null when any will do. */
  version: string | null;
  /** What Composer is asked for: the packages that composer.json requires, or its autoloader only. */
  composer: "install" | "autoload" | null;
  locked: boolean;
  /** Extensions that composer.json requires and the image lacks, and what they are compiled with. */
  extensions: string[];
  extensionPackages: string[];
  /** The folder that is served, seen from the app's. */
  documentRoot: "public" | ".";
  buildCommand: string | null;
  startCommand: string;
};

/** Extensions of PHP's own source that the image is built without. */
const extensionPackages: Record<string, string[]> = {
  bcmath: [],
  bz2: ["libbz2-dev"],
  calendar: [],
  exif: [],
  gd: ["libfreetype-dev", "libjpeg62-turbo-dev", "libpng-dev", "libwebp-dev"],
  gettext: [],
  gmp: ["libgmp-dev"],
  intl: ["libicu-dev"],
  mysqli: [],
  pcntl: [],
  pdo_mysql: [],
  pdo_pgsql: ["libpq-dev"],
  pgsql: ["libpq-dev"],
  soap: ["libxml2-dev"],
  sockets: [],
  xsl: ["libxslt1-dev"],
  zip: ["libzip-dev"],
};

export function detectPhp(sources: Sources, overrides: Overrides): PhpPlan | null {
  const { files } = sources;
  const pages = ["public/index.php", "index.php"].filter((file) => files.has(file));
  if (pages.length === 0 && !files.has("composer.json")) return null;
  const given = overrides.startCommand ?? procfileWeb(sources);
  if (pages.length === 0 && given === null)
    throw new JobError(
      "Found composer.json, but neither public/index.php nor index.php: add one, or set startCommand.",
    );
  const documentRoot = pages[0] === "public/index.php" ? "public" : ".";
  const { require, autoload, config } = readComposerJson(textOf(sources, "composer.json"));
  const required = Object.keys(require ?? {});
  const extensions = Object.keys(extensionPackages).filter((name) => required.includes(`ext-${name}`));
  return {
    kind: "php",
    version: versionOf(config?.platform?.php) ?? versionOf(require?.php),
    composer: required.some(isPackage) ? "install" : autoload === undefined ? null : "autoload",
    extensions,
    extensionPackages: [...new Set(extensions.flatMap((name) => extensionPackages[name] ?? []))],
    locked: files.has("composer.lock"),
    documentRoot,
    buildCommand: overrides.buildCommand,
    startCommand: given ?? `php -S 0.0.0.0:$PORT -t ${documentRoot}`,
  };
}

/** The last of several that are allowed. */
const versionOf = (range: unknown): string | null =>
  typeof range === "string" && range.length <= 100 ? newestMinor(range.split("|").at(-1) ?? "") : null;

/** PHP itself and its extensions are none. */
const isPackage = (name: string): boolean => !/^(?:php|ext-.*|lib-.*)$/.test(name);

type ComposerJson = {
  require?: { php?: unknown };
  autoload?: unknown;
  config?: { platform?: { php?: unknown } };
};

function readComposerJson(text: string): ComposerJson {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new JobError("composer.json is not valid JSON: mend it and deploy again.");
}

import type { BackendPlan } from "../detect/plan.ts";
import { phpDrivers, phpRouter, type PhpPlan } from "../detect/php.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  copySource,
  installAndCopy,
  installDebian,
  installStep,
  runs,
  sourceFolder,
  starts,
  write,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { assetsStage } from "./node.ts";

/** Extensions are those of the image that runs the app, not of Composer's; and its PHP may be older. */
const otherPlatform = "--ignore-platform-req='ext-*' --ignore-platform-req=php+";
const install = `composer install --no-dev --no-interaction --no-progress --prefer-dist --no-scripts --no-autoloader ${otherPlatform}`;
const autoload = `composer dump-autoload --no-dev --optimize ${otherPlatform}`;
const settings = "/usr/local/etc/app";
const router = [
  "<?php",
  "if ((function () {",
  '$path = urldecode(parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH) ?: "/");',
  // Hidden files are nobody's to read, as where plain files are served.
  'if (preg_match("#/[.](?!well-known(/|$)|[.](/|$))#", $path)) { http_response_code(404); exit; }',
  '$root = $_SERVER["DOCUMENT_ROOT"];',
  'return strpos(basename($path), ".") === false || file_exists($root . $path) || !is_file("$root/index.php");',
  "})()) return false;",
  '$_SERVER["SCRIPT_NAME"] = $_SERVER["PHP_SELF"] = "/index.php";',
  '$_SERVER["SCRIPT_FILENAME"] = $_SERVER["DOCUMENT_ROOT"] . "/index.php";',
  'chdir($_SERVER["DOCUMENT_ROOT"]);',
  'require $_SERVER["SCRIPT_FILENAME"];',
];

const driverPackages = ["libpq-dev"];

/** The same for every app. */
export const phpShared = [
  // The image has no php.ini: errors would be shown to visitors, and not logged.
  runs(
    `mkdir -p ${settings} && ${write(["display_errors=0", "log_errors=1"], `${settings}/errors.ini`)} && ${write(router, phpRouter)}`,
  ),
  ...installDebian(driverPackages),
  runs(`docker-php-ext-install ${phpDrivers.join(" ")}`),
];

export function phpDockerfile(
  plan: PhpPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const composerCache = [cache(variables, "composer", "/tmp/composer")];
  const composer = [
    `FROM ${images.composer} AS packages`,
    "WORKDIR /app",
    "ENV COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_CACHE_DIR=/tmp/composer",
    ...installAndCopy(
      plan,
      plan.composer === "install"
        ? installStep(plan.installCommand ?? install, variables, composerCache)
        : [],
      `COPY ${sourceFolder}/ ./`,
    ),
    runs(autoload, composerCache),
  ];
  const packages = plan.composer === null ? `COPY ${sourceFolder}/ ./` : "COPY --from=packages /app/ ./";
  const others = plan.extensions.filter((name) => !phpDrivers.includes(name));
  const php = [
    `FROM ${images.php} AS php`,
    ...phpShared,
    `ENV PHP_INI_SCAN_DIR=:${settings}${plan.symfony ? " APP_ENV=prod" : ""}`,
    ...installDebian(plan.extensionPackages.filter((name) => !driverPackages.includes(name))),
    // By itself, it reads PNG only.
    ...(plan.extensions.includes("gd")
      ? [runs("docker-php-ext-configure gd --with-freetype --with-jpeg --with-webp")]
      : []),
    ...(others.length === 0 ? [] : [runs(`docker-php-ext-install ${others.join(" ")}`)]),
  ];
  // Assets may be made of what Composer installed.
  const assets = (base?: string[]) =>
    plan.assets === null ? [] : assetsStage(plan.assets, variables, images, packages, base);
  const both = [
    `FROM ${images.node} AS node`,
    ...php,
    ...assets(["FROM php AS assets", "COPY --from=node /usr/local /usr/local"]),
  ];
  return [
    "# PHP's own server serves the app. For php-fpm or Apache, or for other extensions, add a Dockerfile.",
    ...plan.lacking.map((name) => `# composer.json requires ext-${name}, which is not installed here.`),
    ...(plan.composer === null ? [] : composer),
    ...(plan.assets !== null && plan.assetsNeedPhp ? both : [...assets(), ...php]),
    "FROM php AS build",
    "WORKDIR /app",
    ...installAndCopy(plan, [], plan.assets === null ? packages : copySource(plan)),
    ...buildStep(plan.composer === null ? (plan.installCommand ?? null) : null, variables),
    ...buildStep(plan.buildCommand, variables),
    "FROM php",
    "ENV PORT=3000 HOME=/app PHP_CLI_SERVER_WORKERS=4",
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

import type { BackendPlan } from "../detect/index.ts";
import type { PhpPlan } from "../detect/php.ts";
import {
  appUser,
  buildStep,
  cache,
  copyManifests,
  copySource,
  installDebian,
  installStep,
  runs,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

/** Extensions are those of the image that runs the app, not of Composer's; and its PHP may be older. */
const otherPlatform = "--ignore-platform-req='ext-*' --ignore-platform-req=php+";
const install = `composer install --no-dev --no-interaction --no-progress --prefer-dist --no-scripts --no-autoloader ${otherPlatform}`;
const autoload = `composer dump-autoload --no-dev --optimize ${otherPlatform}`;
const settings = "/usr/local/etc/app";

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
    ...(plan.composer === "install"
      ? [
          ...copyManifests(["composer.json", ...(plan.locked ? ["composer.lock"] : [])]),
          ...installStep(install, variables, composerCache),
        ]
      : []),
    copySource(plan),
    runs(autoload, composerCache),
  ];
  return [
    "# PHP's own server serves the app; extensions are those that composer.json requires. For php-fpm or Apache, add a Dockerfile.",
    ...(plan.composer === null ? [] : composer),
    `FROM ${images.php} AS php`,
    // The image has no php.ini: errors would be shown to visitors, and not logged.
    runs(`mkdir -p ${settings} && printf '%s\\n' display_errors=0 log_errors=1 > ${settings}/errors.ini`),
    `ENV PHP_INI_SCAN_DIR=:${settings}`,
    ...installDebian(plan.extensionPackages),
    // By itself, it reads PNG only.
    ...(plan.extensions.includes("gd")
      ? [runs("docker-php-ext-configure gd --with-freetype --with-jpeg --with-webp")]
      : []),
    ...(plan.extensions.length === 0 ? [] : [runs(`docker-php-ext-install ${plan.extensions.join(" ")}`)]),
    "FROM php AS build",
    "WORKDIR /app",
    plan.composer === null ? copySource(plan) : "COPY --from=packages /app/ ./",
    ...buildStep(plan.buildCommand, variables),
    "FROM php",
    "ENV PORT=3000 HOME=/app PHP_CLI_SERVER_WORKERS=4",
    `COPY --from=build --chown=${appUser} /app /app`,
    "WORKDIR /app",
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

import type { BackendPlan } from "../detect/index.ts";
import type { PhpPlan } from "../detect/php.ts";
import {
  appUser,
  buildStep,
  cache,
  copyManifests,
  copySource,
  runs,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

/** Extensions are those of the image that runs the app, not of Composer's. */
const install =
  "composer install --no-dev --no-interaction --no-progress --prefer-dist --no-scripts --no-autoloader --ignore-platform-req='ext-*'";
const autoload = "composer dump-autoload --no-dev --optimize --ignore-platform-req='ext-*'";

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
    ...copyManifests(["composer.json", ...(plan.locked ? ["composer.lock"] : [])]),
    runs(install, composerCache),
    copySource(plan),
    runs(autoload, composerCache),
  ];
  return [
    "# PHP's own server serves the app. For php-fpm, Apache or more extensions, add a Dockerfile.",
    ...(plan.composer ? composer : []),
    `FROM ${images.php} AS build`,
    "WORKDIR /app",
    plan.composer ? "COPY --from=packages /app/ ./" : copySource(plan),
    ...buildStep(plan.buildCommand, variables),
    `FROM ${images.php}`,
    "ENV PORT=3000 HOME=/app PHP_CLI_SERVER_WORKERS=4",
    `COPY --from=build --chown=${appUser} /app /app`,
    "WORKDIR /app",
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

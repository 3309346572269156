import type { BackendPlan } from "../detect/plan.ts";
import { peclDrivers, phpDrivers, phpServer, type PhpPlan } from "../detect/php.ts";
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
const modules =
  "mpm_prefork access_compat alias auth_basic authn_core authn_file authz_core authz_host authz_user autoindex deflate dir env expires filter headers mime negotiation rewrite setenvif".split(
    " ",
  );

/** Apache's, whoever the user. The folder that is served may say more in .htaccess, as it may where PHP is usually hosted, with the modules that are on there. */
const apacheConfig = [
  ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
  "Include /etc/apache2/mods-enabled/php*.load",
  "ServerName localhost",
  "Listen ${PORT}",
  "PidFile /tmp/apache2.pid",
  "Mutex file:/tmp default",
  "ErrorLog /dev/stderr",
  "ErrorLogFormat %M",
  "LogLevel notice core:warn mpm_prefork:warn",
  "TypesConfig /etc/mime.types",
  "ServerTokens Prod",
  "TraceEnable Off",
  // A connection that waits for its next request would keep a process.
  "KeepAlive Off",
  "StartServers 2",
  "MinSpareServers 1",
  "MaxSpareServers 4",
  "MaxRequestWorkers ${WEB_CONCURRENCY}",
  "SetEnvIf X-Forwarded-Proto ^https$ HTTPS=on",
  // Hidden files are nobody's to read, as where plain files are served.
  'RedirectMatch 404 "/[.](?!well-known(?:/|$))"',
  "DirectoryIndex index.php index.html",
  "DocumentRoot ${DOCUMENT_ROOT}",
  "<Directory />",
  "AllowOverride None",
  "Require all denied",
  "</Directory>",
  "<Directory ${DOCUMENT_ROOT}>",
  "Options FollowSymLinks",
  "AllowOverride All",
  "Require all granted",
  // Its page answers for what is no file, such as /sitemap.xml.
  "FallbackResource /index.php",
  "</Directory>",
  '<FilesMatch "[.]php$">',
  "SetHandler application/x-httpd-php",
  "</FilesMatch>",
];

/** Apache on a folder of the app, with a process for each 64 MB that it may use. It ends once the requests that it has are answered. */
const server = [
  "#!/bin/sh",
  "memory=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2> /dev/null | head -n 1)",
  // None has a limit of 12 digits: it is that of a host.
  'case $memory in "" | *[!0-9]* | ????????????*) processes=16 ;; *) processes=$((memory / 67108864)) ;; esac',
  "[ $processes -ge 2 ] || processes=2",
  "[ $processes -le 256 ] || processes=256",
  'export WEB_CONCURRENCY="${WEB_CONCURRENCY:-$processes}" DOCUMENT_ROOT="$(realpath "${1:-.}")"',
  // Of a container that was killed.
  "rm -f /tmp/apache2.pid",
  `apache2 -D FOREGROUND -f ${settings}/apache.conf &`,
  "server=$!",
  'trap "kill -WINCH $server" TERM INT',
  "while status=0; wait $server || status=$?; kill -0 $server 2> /dev/null; do :; done",
  "exit $status",
];
const serverPath = `/usr/local/bin/${phpServer}`;

/** Where its server cannot be reached, the app does without: it may need none. */
function installPecl(names: readonly string[]): string {
  const install =
    "yes '' | timeout 300 pecl install $name > /tmp/pecl.log 2>&1 && docker-php-ext-enable $name";
  const failed =
    'tail -n 3 /tmp/pecl.log; echo "ext-$name could not be installed from PECL: an app that uses it will fail."';
  return runs(
    `for name in ${names.join(" ")}; do { ${install}; } || { ${failed}; }; done; rm -rf /tmp/pear /tmp/pecl.log`,
  );
}

const driverPackages = ["libpq-dev"];

/** The same for every app. */
export const phpShared = [
  // The image has no php.ini: errors would be shown to visitors, and not logged.
  runs(
    [
      `mkdir -p ${settings}`,
      write(["display_errors=0", "log_errors=1"], `${settings}/errors.ini`),
      write(apacheConfig, `${settings}/apache.conf`),
      write(server, serverPath),
      `chmod +x ${serverPath}`,
    ].join(" && "),
  ),
  ...installDebian(driverPackages),
  runs(`docker-php-ext-install ${phpDrivers.join(" ")}`),
  installPecl(peclDrivers),
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
    ...(plan.isScaffolded ? [runs("composer drupal:scaffold --no-interaction", composerCache)] : []),
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
    ...(plan.peclExtensions.length === 0 ? [] : [installPecl(plan.peclExtensions)]),
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
    "# Apache serves the app, with .htaccess. For php-fpm, or for other extensions, add a Dockerfile.",
    ...plan.lacking.map((name) => `# composer.json requires ext-${name}, which is not installed here.`),
    ...(plan.composer === null ? [] : composer),
    ...(plan.assets !== null && plan.assetsNeedPhp ? both : [...assets(), ...php]),
    "FROM php AS build",
    "WORKDIR /app",
    ...installAndCopy(plan, [], plan.assets === null ? packages : copySource(plan)),
    ...buildStep(plan.composer === null ? (plan.installCommand ?? null) : null, variables),
    ...buildStep(plan.buildCommand, variables),
    "FROM php",
    "ENV PORT=3000 HOME=/app",
    // Apache's image has another, at which no other program ends.
    "STOPSIGNAL SIGTERM",
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

import { dependsOn, type PackageJson } from "./package-json.ts";

const environments: Record<string, string> = {
  // It listens for its own machine only by default, whatever starts it.
  "@astrojs/node": "HOST=0.0.0.0",
  "@angular/cli": "NG_CLI_ANALYTICS=false",
  // Only hosts of the site reach it, and it is told by the ingress alone who asks; the second ends a warning for each request.
  "@angular/ssr":
    "NG_ALLOWED_HOSTS=* NG_TRUST_PROXY_HEADERS=x-forwarded-for,x-forwarded-host,x-forwarded-proto",
  "@strapi/strapi": "STRAPI_TELEMETRY_DISABLED=true",
  // Their servers take each visitor for one who came by http, or by https, and refuse the forms of others.
  "@builder.io/qwik-city": "PROTOCOL_HEADER=x-forwarded-proto",
  "@sveltejs/adapter-auto": "PROTOCOL_HEADER=x-forwarded-proto",
  "@sveltejs/adapter-node": "PROTOCOL_HEADER=x-forwarded-proto",
  astro: "ASTRO_TELEMETRY_DISABLED=1",
  expo: "EXPO_NO_TELEMETRY=1",
  gatsby: "GATSBY_TELEMETRY_DISABLED=1",
  next: "NEXT_TELEMETRY_DISABLED=1",
  nuxt: "NUXT_TELEMETRY_DISABLED=1",
  // A process that stays would be one of the build step's.
  nx: "NX_DAEMON=false",
  prisma: "CHECKPOINT_DISABLE=1",
  storybook: "STORYBOOK_DISABLE_TELEMETRY=1",
  // Otherwise what it runs gets none of the site's variables but those that turbo.json names, PORT included.
  turbo: "TURBO_TELEMETRY_DISABLED=1 TURBO_ENV_MODE=loose",
};

const authJs = ["@auth/core", "@auth/express", "@auth/solid-start", "@auth/sveltekit"];

/** Each package manager's way to write down that it installs this release, whichever package of a workspace asks for it. */
const locksNextAuth5 =
  /\bnext-auth(?:@(?:npm:)?|\/)[\^~]?5\.|"node_modules\/next-auth": \{\s+"version": "5\./;

/** From next-auth 5 on it is built on Auth.js, which answers at no host but those that it is told to trust. */
function isAuthJs(manifest: PackageJson, lock: string): boolean {
  const version = manifest.dependencies?.["next-auth"];
  if (typeof version === "string" && !version.startsWith("catalog:"))
    return /^[\^~]?5\.|^beta$/.test(version);
  return authJs.some((name) => dependsOn(manifest, name)) || locksNextAuth5.test(lock);
}

/** Variables for the build and the app, by the packages that one of its manifests or its lock file names. */
export const frameworkEnvironment = (manifests: readonly PackageJson[], lock: string): string[] => [
  ...Object.entries(environments)
    .filter(([dependency]) => manifests.some((manifest) => dependsOn(manifest, dependency)))
    .map(([, variable]) => variable),
  // Only hosts of the site reach it.
  ...(manifests.some((manifest) => isAuthJs(manifest, lock)) ? ["AUTH_TRUST_HOST=true"] : []),
];

/**
 * Astro has no variable by which its server takes from the ingress that a visitor came by https, and, before Astro 7, by which host: where the
 * configuration lists no domains, it refuses the forms of every site with TLS. Only hosts of the site reach it, as Angular's above.
 */
const astroDomains =
  `grep -rlEZ --include='*.mjs' --exclude-dir=node_modules '"checkOrigin":[^][{}]*"allowedDomains":\\[\\]' . | ` +
  `xargs -0r sed -Ei 's/("checkOrigin":[^][{}]*"allowedDomains":\\[)\\]/\\1{}]/'`;

/** What is still to be set in what a build made; null where nothing is. */
export const afterBuildOf = (manifest: PackageJson): string | null =>
  dependsOn(manifest, "@astrojs/node") ? astroDomains : null;

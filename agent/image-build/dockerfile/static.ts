import type { HeaderRule, Redirect, StaticRules } from "../detect/static-rules.ts";
import type { SitePlan, StaticPlan } from "../detect/static.ts";
import {
  appUser,
  apart,
  handedOver,
  runs,
  sourceFolder,
  starts,
  write,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { nodeBuildStage } from "./node.ts";

const environment = "ENV PORT=3000 XDG_DATA_HOME=/tmp XDG_CONFIG_HOME=/tmp";

export const staticDockerfile = (
  { folder, singlePage = false, rules }: StaticPlan,
  images: BaseImages,
): string[] =>
  servedFrom(
    `COPY ${sourceFolder}/${folder === undefined ? "" : `${folder}/`} /srv/`,
    singlePage,
    images,
    rules,
  );

/** Files such as .env and .git-credentials are nobody's to read; what browsers and authorities look for is in .well-known. */
const isHidden = (path: string): boolean => /(?:^|\/)\./.test(path.replace(/^\.well-known(?=\/|$)/, ""));
const output = `${handedOver}/output`;
const removeHidden = `find ${output} -mindepth 1 -name ".*" ! -path ${output}/.well-known -prune -exec rm -rf {} +`;

/** Hidden, and made once hidden files are gone: the file in it is named as the path that the site was built for. */
const bases = ".base";
/**
 * A build for a path, such as that of a repository at GitHub Pages, names its scripts and style sheets below a folder that it does not make:
 * the output is that folder, too. Where any of them is at its own path, the site is built for the root.
 */
const serveAtBase =
  `( refs=$(grep -oE '(src|href)=[^[:alnum:]./]?/[[:alnum:]_][[:alnum:]_.,~@%+/-]*\\.(js|mjs|css)' ${output}/index.html | sed 's|^[^/]*/||'); ` +
  `for ref in $refs; do [ ! -f ${output}/$ref ] || exit 0; done; ` +
  `for ref in $refs; do base=\${ref%%/*}; if [ ! -e ${output}/$base ] && [ -f ${output}/\${ref#*/} ]; then ` +
  `ln -s . ${output}/$base && mkdir ${output}/${bases} && touch ${output}/${bases}/$base && ` +
  `echo "The site is built for the path /$base/: it is served there, and / leads to it."; exit 0; fi; done )`;

/** What of the repository no site of files is made of: all outside of the folder that is served, and hidden files. */
export function isLeftOut(path: string, folder: string | undefined): boolean {
  if (folder === undefined) return isHidden(path);
  if (path === folder || folder.startsWith(`${path}/`)) return false;
  return !path.startsWith(`${folder}/`) || isHidden(path.slice(folder.length + 1));
}

/** The owner wrote none of it: its log has errors only. */
const caddyfile = (singlePage: boolean, { redirects, headers }: StaticRules): string[] =>
  indented([
    "{",
    "admin off",
    "log {",
    "level ERROR",
    "}",
    "}",
    "",
    ":{$PORT} {",
    "root * /srv",
    "encode gzip",
    "route {",
    "@hidden {",
    "path_regexp /[.]",
    "not path_regexp ^/[.]well-known(/|/[^.][^/]*)*$",
    "}",
    "error @hidden 404",
    "@own path /_redirects /_headers /Staticfile",
    "error @own 404",
    "@base {",
    "path /",
    "file {",
    `root /srv/${bases}`,
    "try_files /*",
    "}",
    "}",
    "redir @base {http.matchers.file.relative}/{http.request.uri.prefixed_query}",
    ...headers.flatMap(headersOf),
    ...redirects.flatMap((redirect, at) => redirectOf(redirect, at, singlePage)),
    ...(redirects.length === 0 ? ownPath(singlePage) : ["handle {", ...ownPath(singlePage), "}"]),
    "}",
    "handle_errors {",
    "@missing {",
    "expression {http.error.status_code} == 404",
    "file /404.html",
    "}",
    "rewrite @missing /404.html",
    "file_server @missing",
    "}",
    "}",
  ]);

/**
 * /about is about.html where that is there; frameworks write their own page for what is not found, and call one that routes itself
 * 200.html.
 */
const served = (singlePage: boolean): string[] => [
  `try_files {path} {path}.html ${singlePage ? "/index.html" : "{path}/ /200.html"}`,
  "file_server",
];

/** A file at the path itself is served without try_files, which takes a ? or a %20 in its name for a part of an address. */
const ownPath = (singlePage: boolean): string[] => [
  "@file file {path}",
  "file_server @file",
  ...served(singlePage),
];

const headersOf = ({ path, headers }: HeaderRule, at: number): string[] => [
  `@headers${at} path_regexp ${path}`,
  ...headers.map(([name, value]) =>
    value === null
      ? `header @headers${at} -${name}`
      : `header @headers${at} ${name} "${value.replaceAll('"', String.raw`\"`)}"`,
  ),
];

function redirectOf({ path, to, status, isForced }: Redirect, at: number, singlePage: boolean): string[] {
  const target = to.replaceAll(/\{(\d+)\}/g, `{re.redirect${at}.$1}`);
  const answer =
    status === 200
      ? [`rewrite * ${target}`, ...served(singlePage)]
      : status === 404
        ? [`rewrite * ${target}`, "file_server {", "status 404", "}"]
        : [`redir * ${target} ${status}`];
  return [
    `@redirect${at} {`,
    `path_regexp redirect${at} ${path}`,
    // A file goes before what is not forced.
    ...(isForced ? [] : ["not file {path} {path}.html {path}/index.html"]),
    "}",
    `handle @redirect${at} {`,
    ...answer,
    "}",
  ];
}

/** As `caddy fmt` does: Caddy warns of any other. */
function indented(lines: readonly string[]): string[] {
  let depth = 0;
  return lines.map((line) => {
    if (line === "}") depth--;
    const text = line === "" ? "" : "\t".repeat(depth) + line;
    if (line.endsWith("{")) depth++;
    return text;
  });
}

export function siteDockerfile(plan: SitePlan, variables: BuildVariables, images: BaseImages): string[] {
  const made = { ...plan, manifest: plan.isOutputGiven ? null : "package.json" };
  if (plan.buildCommand === null)
    return [...nodeBuildStage(plan, "build", variables, images), ...servedFiles(made, images)];
  // In the build's own step, wherever that ends: one more takes the engine 0.2 s.
  const buildCommand = `${apart(plan.buildCommand)} && ${take(made)}`;
  return [
    ...nodeBuildStage({ ...plan, buildCommand }, "build", variables, images),
    ...servedTaken(made, images),
  ];
}

type Made = Pick<
  SitePlan,
  "outputs" | "singlePage" | "fallbacks" | "rules" | "adapter" | "remedy" | "apps"
> & {
  /** A file of the source; null: the folder is known. */
  manifest: string | null;
};

/** The files that a stage `build` has made, served. */
export const servedFiles = (plan: Made, images: BaseImages): string[] => [
  runs(take(plan)),
  ...servedTaken(plan, images),
];

/** What one page alone is for the paths that it routes itself; see `served`. */
const alsoForUnknownPaths = `{ [ "$(find ${output} -name "*.html")" != ${output}/index.html ] || cp ${output}/index.html ${output}/200.html; }`;

const useFallback = (pages: readonly string[]): string =>
  `for page in ${pages.join(" ")}; do if [ -f ${output}/$page ]; then cp ${output}/$page ${output}/200.html; break; fi; done`;

const take = (plan: Made): string =>
  [
    `( ${takeOutput(plan)} )`,
    removeHidden,
    ...(plan.fallbacks?.length ? [`{ ${useFallback(plan.fallbacks)}; }`] : []),
    ...(plan.singlePage === null ? [alsoForUnknownPaths] : []),
    serveAtBase,
  ].join(" && ");

const servedTaken = ({ singlePage, rules }: Made, images: BaseImages): string[] =>
  servedFrom(`COPY --from=build ${output}/ /srv/`, singlePage ?? false, images, rules);

const noRules: StaticRules = { redirects: [], headers: [], notes: [] };

const servedFrom = (
  copy: string,
  singlePage: boolean,
  images: BaseImages,
  rules: StaticRules = noRules,
): string[] => [
  `FROM ${images.caddy}`,
  runs(`mkdir -p /etc/caddy && ${write(caddyfile(singlePage, rules), "/etc/caddy/Caddyfile")}`),
  copy,
  environment,
  `USER ${appUser}`,
  starts("caddy run --config /etc/caddy/Caddyfile --adapter caddyfile"),
];

/**
 * The first of the folders that holds an index.html or a 200.html becomes the site, or else the only one to which the build wrote one: it was
 * modified after the source was copied.
 */
function takeOutput({ outputs, manifest, adapter, remedy, apps }: Made): string {
  const advice =
    adapter === undefined
      ? (remedy ??
        `Make it write there, set rootDir to the folder of the app that does${apps === undefined ? "" : ` (${apps})`}, or set startCommand.`)
      : `${adapter.name} builds for ${adapter.host}: use ${adapter.instead} instead, which produces a server, or set outputDir if there are only files.`;
  const problem = `The build left an index.html in none of: ${outputs.join(", ")}. ${advice}`;
  const written = `find . \\( -name node_modules -o -name ".?*" \\) -prune -o -path "./*/*" -name index.html -newermc ${manifest} -printf "%d %h\\n"`;
  const search =
    manifest === null
      ? []
      : [
          `found=$(${written} | sort -n)`,
          'first=$(echo "$found" | head -n 1)',
          // Of those that lie equally deep, each could be meant.
          `if [ "$(echo "$found" | grep -c "^\${first%% *} ")" = 1 ]; then echo "The site is what the build wrote to \${first#* }."; exec cp -R "\${first#* }" ${output}; fi`,
        ];
  return [
    `for folder in ${outputs.join(" ")}; do if [ -f "$folder/index.html" ]; then exec cp -R "$folder" ${output}; elif [ -f "$folder/200.html" ]; then cp -R "$folder" ${output} && exec cp ${output}/200.html ${output}/index.html; fi; done`,
    ...search,
    `echo '${problem}' >&2; exit 1`,
  ].join("; ");
}

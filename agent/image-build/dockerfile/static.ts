import type { SitePlan } from "../detect/static.ts";
import {
  appUser,
  runs,
  sourceFolder,
  starts,
  write,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { nodeBuildStage } from "./node.ts";

const environment = "ENV PORT=3000 XDG_DATA_HOME=/tmp XDG_CONFIG_HOME=/tmp";

export const staticDockerfile = (images: BaseImages): string[] =>
  servedFrom(`COPY ${sourceFolder}/ /srv/`, false, images);

/** Files such as .env and .git-credentials are nobody's to read; what browsers and authorities look for is in .well-known. */
export const isHidden = (path: string): boolean =>
  /(?:^|\/)\./.test(path.replace(/^\.well-known(?=\/|$)/, ""));
const removeHidden =
  'find /output -mindepth 1 -name ".*" ! -path /output/.well-known -prune -exec rm -rf {} +';

/**
 * /about is about.html where that is there; frameworks write their own page for what is not found, and call one that routes itself
 * 200.html.
 */
const caddyfile = (singlePage: boolean): string[] => [
  "{",
  "admin off",
  "}",
  ":{$PORT}",
  "root * /srv",
  "encode gzip",
  "route {",
  "@hidden {",
  "path_regexp /[.]",
  "not path_regexp ^/[.]well-known(/|/[^.][^/]*)*$",
  "}",
  "error @hidden 404",
  `try_files {path} {path}.html ${singlePage ? "/index.html" : "{path}/ /200.html"}`,
  "file_server",
  "}",
  "handle_errors {",
  "@missing expression {http.error.status_code} == 404",
  "rewrite @missing /404.html",
  "file_server @missing",
  "}",
];

export const siteDockerfile = (plan: SitePlan, variables: BuildVariables, images: BaseImages): string[] => [
  ...nodeBuildStage(plan, "build", variables, images),
  ...servedFiles({ ...plan, manifest: "package.json" }, images),
];

type Made = Pick<SitePlan, "outputs" | "singlePage"> & {
  /** A file of the source. */
  manifest: string;
};

/** The files that a stage `build` has made, served. */
export const servedFiles = (plan: Made, images: BaseImages): string[] => [
  runs(takeOutput(plan)),
  runs(removeHidden),
  ...servedFrom("COPY --from=build /output/ /srv/", plan.singlePage, images),
];

const servedFrom = (copy: string, singlePage: boolean, images: BaseImages): string[] => [
  `FROM ${images.caddy}`,
  runs(`mkdir -p /etc/caddy && ${write(caddyfile(singlePage), "/etc/caddy/Caddyfile")}`),
  copy,
  environment,
  `USER ${appUser}`,
  starts("caddy run --config /etc/caddy/Caddyfile --adapter caddyfile"),
];

/**
 * The first of the folders that holds an index.html or a 200.html becomes the site, or else the only one to which the build wrote one: it was
 * modified after the source was copied.
 */
function takeOutput({ outputs, manifest }: Made): string {
  const problem = `The build left an index.html in none of: ${outputs.join(", ")}. Make it write there, set rootDir to the folder of the app that does, or set startCommand.`;
  const written = `find . \\( -name node_modules -o -name ".?*" \\) -prune -o -path "./*/*" -name index.html -newermc ${manifest} -printf "%d %h\\n"`;
  return [
    `for folder in ${outputs.join(" ")}; do if [ -f "$folder/index.html" ]; then exec cp -R "$folder" /output; elif [ -f "$folder/200.html" ]; then cp -R "$folder" /output && exec cp /output/200.html /output/index.html; fi; done`,
    `found=$(${written} | sort -n)`,
    'first=$(echo "$found" | head -n 1)',
    // Of those that lie equally deep, each could be meant.
    'if [ "$(echo "$found" | grep -c "^${first%% *} ")" = 1 ]; then echo "The site is what the build wrote to ${first#* }."; exec cp -R "${first#* }" /output; fi',
    `echo '${problem}' >&2; exit 1`,
  ].join("; ");
}

import { JobError } from "../../job.ts";
import { nodeMajor } from "./node-version.ts";
import { parsePackageJson, scriptOf } from "./package-json.ts";
import { lockFiles } from "./package-manager.ts";
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

export type ElixirPlan = Place & {
  kind: "elixir";
  /** Such as 1.18 or 1.18.3-otp-27; null when any will do. */
  version: string | null;
  manifests: string[];
  /** What dependencies are compiled with. */
  configuration: string[];
  needsSource: boolean;
  hasPackages: boolean;
  /** The packages of npm in assets/, with which what browsers load is made; null where there are none. */
  npm: { major: number; locked: boolean } | null;
  /** Its name, and whether mix.exs has it in a list of them; null where none is made. */
  release: { name: string; isListed: boolean } | null;
  buildCommand: string;
  startCommand: string;
  /** The release is all that is started. */
  releaseOnly: boolean;
};

export function detectElixir(sources: Sources, overrides: Overrides): ElixirPlan | null {
  if (!sources.files.has("mix.exs")) return null;
  const project = textOf(sources, "mix.exs");
  const given = overrides.startCommand ?? procfileWeb(sources);
  const release = releaseOf(project);
  if (given === null && release === null)
    throw new JobError(
      "Found an umbrella project without a release: name one in releases: of mix.exs, set rootDir to the app, or set startCommand.",
    );
  const { within } = placeOf(sources);
  const assets = sources.files.has("assets/package.json") ? textOf(sources, "assets/package.json") : null;
  return {
    kind: "elixir",
    within,
    version: versionOf(sources),
    manifests: present(sources, [
      "mix.exs",
      "mix.lock",
      ...(assets === null ? [] : [...npmLocks, "assets/.npmrc", "assets/package.json"]),
    ]),
    configuration: present(sources, ["config/config.exs", "config/prod.exs"]),
    needsSource:
      within !== null ||
      isUmbrella(project) ||
      /\bpath:/.test(project) ||
      // Phoenix's own JavaScript is in deps/.
      /"(?:file|link):(?!\.\.\/deps\/)/.test(assets ?? ""),
    hasPackages: sources.files.has("mix.lock") || /\{:\w+,/.test(project),
    npm:
      assets === null
        ? null
        : {
            major: nodeMajor(sources, parsePackageJson(assets)?.engines?.["node"]),
            locked: present(sources, npmLocks).length > 0,
          },
    release,
    buildCommand: overrides.buildCommand ?? ["mix compile", ...makeAssets(project, assets)].join(" && "),
    startCommand: given ?? `PHX_SERVER=true bin/${release?.name} start`,
    releaseOnly: given === null,
  };
}

const npmLocks = lockFiles.npm.map((file) => `assets/${file}`);

/** By the aliases of Phoenix's template or, before 1.6, by the script of its package.json. */
function makeAssets(project: string, manifest: string | null): string[] {
  const aliases = ["assets.setup", "assets.deploy"].filter((name) => project.includes(`"${name}"`));
  const isScript = !aliases.includes("assets.deploy") && manifest !== null;
  const deploys = isScript && scriptOf(parsePackageJson(manifest) ?? {}, "deploy") !== null;
  return [
    ...aliases.map((name) => `mix ${name}`),
    ...(deploys ? ["npm run deploy --prefix assets", "mix phx.digest"] : []),
  ];
}

const isUmbrella = (project: string): boolean => /\bapps_path:/.test(project);

function releaseOf(project: string): ElixirPlan["release"] {
  const listed = /\breleases:[ \t\r\n]{0,100}\[[ \t\r\n]{0,100}(\w{1,100}):/.exec(project)?.[1];
  if (listed !== undefined) return { name: listed, isListed: true };
  const app = isUmbrella(project) ? undefined : /\bapp:[ \t]{0,20}:(\w{1,100})/.exec(project)?.[1];
  return app === undefined ? null : { name: app, isListed: false };
}

function versionOf(sources: Sources): string | null {
  const text =
    toolVersion(sources, "elixir") ||
    (/^elixir_version=["']?(\S{1,40})/m.exec(textOf(sources, "elixir_buildpack.config"))?.[1] ?? "");
  return /^v?(\d+\.\d+(?:\.\d+)?(?:-otp-\d+)?)(?![\w.])/.exec(text)?.[1] ?? null;
}

import { posix } from "node:path";
import { JobError } from "../../job.ts";
import {
  placeOf,
  present,
  procfileWeb,
  textOf,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

export type DotnetPlan = Place & {
  kind: "dotnet";
  /** Such as 8.0; null when any will do. */
  version: string | null;
  /** The SDK that global.json demands, such as 8.0.404. */
  sdk: string | null;
  /** The project that is published, such as src/Web/Web.csproj; null when buildCommand builds. */
  project: string | null;
  manifests: string[];
  needsSource: boolean;
  locked: boolean;
  /** It runs in the browser: its files are served. */
  isWebAssembly: boolean;
  buildCommand: string | null;
  startCommand: string;
};

const project = /^(?:[\w.@+-]+\/){0,2}[\w.@+-]+\.(?:cs|fs|vb)proj$/;
const solution = /^[\w.@+-]+\.slnx?$/;
const sharedProperties = ["Directory.Build.props", "Directory.Packages.props"];
const shared = [
  "global.json",
  ...sharedProperties,
  "Directory.Build.targets",
  "nuget.config",
  "NuGet.config",
  "NuGet.Config",
  "packages.lock.json",
];
const sharedBelow = /\/(?:Directory\.[\w.]{1,60}\.(?:props|targets)|nuget\.config)$/i;
const mostProjects = 30;

export function detectDotnet(sources: Sources, overrides: Overrides): DotnetPlan | null {
  const files = [...sources.files];
  if (!files.some((file) => solution.test(file) || (!file.includes("/") && project.test(file)))) return null;
  const projects = files.filter((file) => project.test(file)).sort();
  const given = overrides.startCommand ?? procfileWeb(sources);
  if (overrides.buildCommand !== null && given === null)
    throw new JobError(
      "buildCommand is set for a .NET repository: also set startCommand to what it builds, such as dotnet out/Web.dll.",
    );
  const published = overrides.buildCommand === null ? appOf(sources, projects) : null;
  const text = published === null ? "" : textOf(sources, published);
  const { within } = placeOf(sources);
  return {
    kind: "dotnet",
    within,
    version: versionOf([text, ...sharedProperties.map((file) => textAbove(sources, file))]),
    sdk:
      /"version"[ \t]{0,20}:[ \t]{0,20}"(\d+\.\d+\.\d+)"/.exec(textAbove(sources, "global.json"))?.[1] ??
      null,
    project: published,
    manifests: [
      ...present(sources, shared),
      ...files.filter((file) => solution.test(file)).sort(),
      ...projects,
      ...projects
        .map((file) => file.replace(/[^/]*$/, "packages.lock.json"))
        .filter((file) => file.includes("/") && sources.files.has(file)),
    ],
    needsSource: within !== null || projects.length > mostProjects || readsMore(sources, projects),
    locked: published !== null && sources.files.has(published.replace(/[^/]*$/, "packages.lock.json")),
    isWebAssembly: given === null && isWebAssembly(text),
    buildCommand: overrides.buildCommand,
    startCommand: given ?? `ASPNETCORE_URLS=http://+:$PORT dotnet ${assemblyOf(published ?? "", text)}.dll`,
  };
}

/** Of the app, or of the root of the repository that it is built with. */
const textAbove = (sources: Sources, file: string): string =>
  textOf(sources, file) || (sources.repository ? textOf(sources.repository.root, file) : "");

/** A restore reads other files than the manifests that are found without evaluating them. */
const readsMore = (sources: Sources, projects: string[]): boolean =>
  [...sources.files].some((file) => sharedBelow.test(file)) ||
  [...shared, ...projects].some((file) => /<Import\s/.test(textOf(sources, file))) ||
  projects.some((file) => referredBy(file, textOf(sources, file)).some((other) => !projects.includes(other)));

const referredBy = (file: string, text: string): string[] =>
  [...text.matchAll(/<ProjectReference\s[^>]{0,500}?\bInclude\s{0,9}=\s{0,9}["']([^"']{1,300})["']/g)].map(
    ([, path = ""]) => posix.join(posix.dirname(file), path.replaceAll("\\", "/")),
  );

const isWebAssembly = (text: string): boolean => text.includes("Microsoft.NET.Sdk.BlazorWebAssembly");
const isWeb = (text: string): boolean =>
  /Microsoft\.NET\.Sdk\.(?:Web|BlazorWebAssembly)\b/.test(text) && !isTest(text);
const isProgram = (text: string): boolean =>
  (/<OutputType>\s*Exe\s*</i.test(text) || text.includes("Microsoft.NET.Sdk.Worker")) && !isTest(text);
const isTest = (text: string): boolean => /Microsoft\.NET\.Test\.Sdk|<IsTestProject>true/.test(text);

/** A server goes before the pages that it hosts, and those before programs. @throws JobError where more than one could be meant */
function appOf(sources: Sources, projects: string[]): string {
  const those = (is: (text: string) => boolean) => projects.filter((file) => is(textOf(sources, file)));
  const servers = those((text) => isWeb(text) && !isWebAssembly(text));
  const apps = [servers, those(isWebAssembly), those(isProgram), projects].find((found) => found.length > 0);
  const [app, ...others] = apps ?? [];
  if (app === undefined)
    throw new JobError(
      "Found a .NET solution, but no project at most two folders below it: set rootDir to the project's folder.",
    );
  if (others.length === 0) return app;
  throw new JobError(
    `Found more than one app (${[app, ...others].slice(0, 5).join(", ")}): set buildCommand to publish one of them, such as dotnet publish ${app} -c Release -o out, and startCommand to start it, such as dotnet out/${assemblyOf(app, textOf(sources, app))}.dll.`,
  );
}

const assemblyOf = (file: string, text: string): string =>
  /<AssemblyName>([\w.-]{1,100})</.exec(text)?.[1] ?? file.replace(/^.*\//, "").replace(/\.\w+$/, "");

const versionOf = (texts: string[]): string | null =>
  texts
    .flatMap((text) => [...text.matchAll(/<TargetFrameworks?>[^<]{0,200}?net(\d{1,2}\.\d)\b/g)])
    .map(([, version = ""]) => version)[0] ?? null;

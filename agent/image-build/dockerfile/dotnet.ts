import { posix } from "node:path";
import type { DotnetPlan } from "../detect/dotnet.ts";
import type { BackendPlan } from "../detect/plan.ts";
import {
  appFolder,
  appUser,
  buildStep,
  copyManifests,
  copySource,
  installStep,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { servedFiles } from "./static.ts";

/** Beside its project where the command looks for it there, as one for Heroku does. */
const outputOf = (plan: DotnetPlan): string =>
  plan.project !== null && /\bbin\/publish\b/.test(plan.startCommand)
    ? posix.join(appFolder(plan), posix.dirname(plan.project), "bin/publish")
    : "/app/out";

export function dotnetDockerfile(
  plan: DotnetPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const { project } = plan;
  const output = outputOf(plan);
  const copy = [copySource(plan), ...(plan.within === null ? [] : [`WORKDIR ${appFolder(plan)}`])];
  const locked = plan.locked ? " --locked-mode" : "";
  const command = plan.installCommand ?? (project === null ? null : `dotnet restore ${project}${locked}`);
  const restore = command === null ? [] : installStep(command, variables, []);
  const publish = `dotnet publish ${project} --no-restore --configuration Release --output ${output}`;
  const build = [
    `FROM ${images.dotnetSdk} AS build`,
    "WORKDIR /app",
    "ENV DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1",
    ...(plan.needsSource ? [...copy, ...restore] : [...copyManifests(plan.manifests), ...restore, ...copy]),
    ...buildStep(plan.buildCommand ?? publish, variables),
  ];
  if (plan.isWebAssembly)
    return [
      ...build,
      ...servedFiles({ outputs: [`${output}/wwwroot`], singlePage: true, manifest: null }, images),
    ];
  const only = plan.startCommand.startsWith("ASPNETCORE_URLS=") && project !== null;
  return [
    ...build,
    `FROM ${images.dotnet}`,
    // Where the host has no image of the release that the app asks for, it runs on a newer one.
    "ENV PORT=3000 HOME=/app DOTNET_ROLL_FORWARD=Major",
    `COPY --from=build --chown=${appUser} ${only ? output : "/app"} /app`,
    `WORKDIR ${only ? "/app" : appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

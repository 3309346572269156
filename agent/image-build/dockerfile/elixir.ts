import type { ElixirPlan } from "../detect/elixir.ts";
import type { BackendPlan } from "../detect/plan.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  copyManifests,
  copySource,
  installDebian,
  installStep,
  runs,
  sourceFolder,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { tools } from "./node.ts";

const home = "/opt/mix";
const environment = `ENV PORT=3000 MIX_ENV=prod LANG=C.UTF-8 MIX_HOME=${home} HEX_HOME=${home}/hex`;

export function elixirDockerfile(
  plan: ElixirPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const caches = [cache(variables, "hex", `${home}/hex`)];
  const packages = plan.hasPackages
    ? installStep(plan.installCommand ?? "mix deps.get --only prod", variables, caches)
    : [];
  const npm =
    plan.npm === null
      ? []
      : installStep(
          `cd assets && ${plan.npm.locked ? `${tools.npm.locked}${tools.npm.unfit}` : tools.npm.loose}`,
          variables,
          [cache(variables, "npm", tools.npm.cache)],
        );
  const compile = plan.hasPackages ? installStep("mix deps.compile", variables, caches) : [];
  const copy = [copySource(plan), ...(plan.within === null ? [] : [`WORKDIR ${appFolder(plan)}`])];
  const released = `${appFolder(plan)}/_build/prod/rel/${plan.release?.name}`;
  const named = plan.release?.isListed ? ` ${plan.release.name}` : "";
  const release = plan.release === null ? "" : ` && mix release${named} --overwrite`;
  return [
    ...(plan.npm === null ? [] : [`FROM ${images.node} AS node`]),
    `FROM ${images.elixir} AS build`,
    ...(plan.npm === null ? [] : ["COPY --from=node /usr/local/ /usr/local/"]),
    ...(plan.hasPackages ? installDebian(["build-essential", "git"]) : []),
    "WORKDIR /app",
    environment,
    ...(plan.npm === null ? [] : [`ENV ${tools.npm.env}`]),
    ...(plan.hasPackages ? [runs("mix local.hex --force && mix local.rebar --force")] : []),
    ...(plan.needsSource
      ? [...copy, ...packages, ...npm, ...compile]
      : [
          ...copyManifests(plan.manifests),
          ...packages,
          ...npm,
          // Dependencies are compiled with it.
          ...(plan.configuration.length === 0
            ? []
            : [`COPY ${plan.configuration.map((file) => `${sourceFolder}/${file}`).join(" ")} config/`]),
          ...compile,
          ...copy,
        ]),
    ...buildStep(`${plan.buildCommand}${release}`, variables, caches),
    // A release brings a runtime that is linked to the libraries of this image.
    `FROM ${images.elixir}`,
    // Nothing but the app listens: the name server of nodes would, too.
    `${environment} HOME=/app RELEASE_DISTRIBUTION=none`,
    ...(plan.releaseOnly || !plan.hasPackages ? [] : [`COPY --from=build ${home} ${home}`]),
    `COPY --from=build --chown=${appUser} ${plan.releaseOnly ? released : "/app"} /app`,
    `WORKDIR ${plan.releaseOnly ? "/app" : appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

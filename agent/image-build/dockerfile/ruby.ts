import type { BackendPlan } from "../detect/plan.ts";
import type { RubyPlan } from "../detect/ruby.ts";
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
  starts,
  unlessGiven,
  write,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { assetsStage, buildEnvironment, nodeBuildStage } from "./node.ts";
import { servedFiles } from "./static.ts";

/** The image's GEM_HOME. */
const gems = "/usr/local/bundle";

const addPlatform =
  "BUNDLE_FROZEN=false bundle lock --add-platform $(ruby -e 'print Gem::Platform.local') && ";

export function rubyDockerfile(
  plan: RubyPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const caches = [cache(variables, "gems", "/root/.bundle/cache")];
  const mode = `BUNDLE_WITHOUT=development:test${plan.locked ? " BUNDLE_FROZEN=1" : ""}`;
  const environment = `PORT=3000 RACK_ENV=production RAILS_ENV=production RAILS_LOG_TO_STDOUT=1 RAILS_SERVE_STATIC_FILES=1 ${mode}`;
  const copy = copySource(plan);
  const node = plan.needsNode ? ["COPY --from=node /usr/local/bin/node /usr/local/bin/"] : [];
  const { assets } = plan;
  const packs = assets !== null && plan.packsByNode;
  const build = [
    ...(packs ? nodeBuildStage(assets, "assets", variables, images) : []),
    ...(assets !== null && !packs ? assetsStage(assets, variables, images) : []),
    ...(plan.needsNode ? [`FROM ${images.node} AS node`] : []),
    `FROM ${images.ruby} AS build`,
    ...node,
    "WORKDIR /app",
    `ENV ${unlessGiven(environment, variables)} BUNDLE_GLOBAL_GEM_CACHE=true`,
    ...(plan.hasGems ? installDebian(plan.packages.build) : []),
    runs(`mkdir -p ${gems}`),
    ...installAndCopy(
      plan,
      plan.hasGems || plan.installCommand !== undefined
        ? [
            ...(plan.gemfile === null ? [] : [runs(write(plan.gemfile, "Gemfile"))]),
            ...installStep(
              plan.installCommand ?? `${plan.addsPlatform ? addPlatform : ""}bundle install`,
              variables,
              caches,
            ),
          ]
        : [],
      copy,
    ),
    ...(packs
      ? [
          "COPY --from=assets /usr/local /usr/local",
          "COPY --from=assets /opt /opt",
          ...buildEnvironment(assets, variables),
        ]
      : []),
    ...buildStep(plan.buildCommand, variables),
    ...(packs ? [runs("rm -rf node_modules")] : []),
  ];
  if (plan.startCommand === null)
    return [
      ...build,
      ...servedFiles(
        {
          outputs: [plan.output],
          singlePage: plan.singlePage ?? false,
          manifest: plan.output === "_site" && plan.gemfile === null ? "Gemfile" : null,
        },
        images,
      ),
    ];
  return [
    ...build,
    `FROM ${images.ruby}`,
    ...node,
    ...installDebian(plan.packages.run),
    `ENV ${environment} HOME=/app`,
    `COPY --from=build ${gems} ${gems}`,
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

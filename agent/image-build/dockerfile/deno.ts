import type { DenoPlan } from "../detect/deno.ts";
import type { BackendPlan } from "../detect/plan.ts";
import {
  appFolder,
  appUser,
  buildStep,
  copySource,
  installAndCopy,
  installStep,
  runs,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { servedFiles } from "./static.ts";

const packages = "/deno-dir";

export function denoDockerfile(
  plan: DenoPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  // No cache: the app loads its packages from there.
  const usual = plan.installs ? `deno install${plan.locked ? " --frozen" : ""}` : null;
  const command = plan.installCommand ?? usual;
  const install = command === null ? [] : installStep(command, variables, []);
  const build = [
    `FROM ${images.deno} AS build`,
    "WORKDIR /app",
    `ENV DENO_DIR=${packages} DENO_NO_UPDATE_CHECK=1`,
    ...installAndCopy(plan, install, copySource(plan)),
    ...buildStep(plan.buildCommand, variables),
  ];
  if (plan.startCommand === null)
    return [
      ...build,
      ...servedFiles(
        {
          outputs: [plan.output],
          singlePage: plan.singlePage,
          manifest: plan.isOutputGiven ? null : (plan.manifests[0] ?? null),
        },
        images,
      ),
    ];
  return [
    ...build,
    ...(plan.entry === null
      ? []
      : installStep(`if [ -f ${plan.entry} ]; then deno cache ${plan.entry}; fi`, variables, [])),
    runs(`mkdir -p ${packages}`),
    `FROM ${images.deno}`,
    `ENV PORT=3000 HOME=/app DENO_DIR=${packages} DENO_NO_UPDATE_CHECK=1`,
    `COPY --from=build --chown=${appUser} ${packages} ${packages}`,
    `COPY --from=build --chown=${appUser} /app /app`,
    `WORKDIR ${appFolder(plan)}`,
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

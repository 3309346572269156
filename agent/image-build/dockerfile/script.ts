import type { ScriptPlan } from "../detect/script.ts";
import {
  appUser,
  buildStep,
  runs,
  sourceFolder,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";
import { servedFiles } from "./static.ts";

export function scriptDockerfile(plan: ScriptPlan, variables: BuildVariables, images: BaseImages): string[] {
  const { output, singlePage = false } = plan;
  const build = [
    `FROM ${images.debian} AS build`,
    "WORKDIR /app",
    `COPY ${sourceFolder}/ ./`,
    // Committed on Windows, it is no program yet.
    ...(plan.script === null ? [] : [runs(`chmod +x ${plan.script}`)]),
    ...buildStep(plan.installCommand ?? null, variables),
    ...buildStep(plan.buildCommand, variables),
  ];
  if (plan.startCommand === null)
    return [...build, ...servedFiles({ outputs: [output], singlePage, manifest: null }, images)];
  return [
    ...build,
    `FROM ${images.debian}`,
    "ENV PORT=3000 HOME=/app",
    `COPY --from=build --chown=${appUser} /app /app`,
    "WORKDIR /app",
    `USER ${appUser}`,
    starts(plan.startCommand),
  ];
}

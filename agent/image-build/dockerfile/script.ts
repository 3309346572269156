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

export const scriptDockerfile = (
  plan: ScriptPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] => [
  `FROM ${images.debian} AS build`,
  "WORKDIR /app",
  `COPY ${sourceFolder}/ ./`,
  // Committed on Windows, it is no program yet.
  ...(plan.script === null ? [] : [runs(`chmod +x ${plan.script}`)]),
  ...buildStep(plan.buildCommand, variables),
  `FROM ${images.debian}`,
  "ENV PORT=3000 HOME=/app",
  `COPY --from=build --chown=${appUser} /app /app`,
  "WORKDIR /app",
  `USER ${appUser}`,
  starts(plan.startCommand),
];

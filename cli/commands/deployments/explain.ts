import type { Answer } from "../../../client/index.ts";
import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { bold, dim, fields, safe } from "../../terminal.ts";
import { notCompared, shown } from "./compare.ts";

/** What differs from the last good one. */
const changedText = ({
  commit,
  settings,
  unknownSettings,
  environment,
}: NonNullable<Answer<"explainDeployment">["changed"]>): string =>
  [
    ...(commit ? ["the commit"] : []),
    ...settings,
    ...environment.map(({ key, change }) => `variable ${safe(key)} ${change}`),
    ...(unknownSettings.length > 0 ? [`not known: ${unknownSettings.join(", ")}`] : []),
  ].join("\n") || `nothing ${notCompared}`;

export const explainDeployment = command(
  "explain",
  "Why a deployment failed, what has changed since the last good one, and how to fix it",
  "explainDeployment",
)
  .argument("<deployment>", "id")
  .action((id) =>
    answered("explainDeployment", { id }, (one) =>
      [
        bold(`Deployment #${one.deployment.number}: ${one.deployment.status}`),
        fields({
          Step: one.step,
          Problem: one.error && safe(one.error),
          Cause: one.cause && safe(one.cause.explanation),
          "Exit code": one.exitCode === null ? null : String(one.exitCode),
          Probe: one.probe && safe(one.probe),
          "Last good one": one.lastGood && `#${one.lastGood.number} ${dim(one.lastGood.id)}`,
          Changed: one.changed && changedText(one.changed),
          "Not applied": one.unapplied
            .map(
              ({ setting, deployed, site }) => `${setting}: ${shown(deployed)}, the site's: ${shown(site)}`,
            )
            .join("\n"),
          "Last lines": one.lastLines.map(safe).join("\n"),
          "What helps": one.fixes.map(({ summary }) => safe(summary)).join("\n"),
        }),
      ].join("\n"),
    ),
  );

import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { bold, fields, safe } from "../../terminal.ts";

export const notCompared = "(linked databases are not compared)";

export const shown = (value: unknown): string =>
  value === null ? "not set" : safe(typeof value === "string" ? value : JSON.stringify(value));

export const compareDeployments = command(
  "compare",
  "What differs between two deployments of a site",
  "compareDeployments",
)
  .argument("<deployment>", "id")
  .argument("<other>", "id of another deployment of the same site")
  .action((id, deploymentId) =>
    answered("compareDeployments", { id, deploymentId }, ({ earlier, later, unknownSettings, ...differs }) =>
      [
        bold(`From #${earlier.number} to #${later.number}`),
        fields({
          Commit: differs.commit
            ? `${earlier.commit?.slice(0, 12) ?? "–"} → ${later.commit?.slice(0, 12) ?? "–"}`
            : "the same",
          Settings:
            differs.settings === null
              ? "no longer known"
              : differs.settings
                  .map((one) => `${one.setting}: ${shown(one.earlier)} → ${shown(one.later)}`)
                  .join("\n") || (unknownSettings.length > 0 ? null : "the same"),
          "Not known":
            differs.settings && unknownSettings.length > 0
              ? `${unknownSettings.join(", ")}: what a version is built from is kept while it may be built again`
              : null,
          Variables:
            differs.environment.map(({ key, change }) => `${safe(key)} ${change}`).join("\n") ||
            `the same ${notCompared}`,
        }),
      ].join("\n"),
    ),
  );

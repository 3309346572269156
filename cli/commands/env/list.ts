import { command } from "../../command.ts";
import { connect, nextCommand } from "../../context.ts";
import { findSite } from "../../site.ts";
import { bold, cut, dim, safe, showValue, table } from "../../terminal.ts";

export const listEnv = command("list", "A site's variables; secrets are not shown", "variables")
  .argument("[site]", "name or id")
  .action(async (named) => {
    const { envVariables } = await findSite(await connect(), named);
    showValue("variables", { data: envVariables }, ({ data }) =>
      table(
        data,
        {
          name: ({ key }) => bold(safe(key)),
          value: ({ value }) => (value === null ? dim("secret") : cut(safe(value), 60)),
          scope: ({ scope }) => (scope === "both" ? "" : scope),
        },
        `No variables. Set one with \`${nextCommand("env set NAME=value", named)}\`.`,
      ),
    );
  });

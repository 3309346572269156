import { command } from "../../command.ts";
import { connect, nextCommand } from "../../context.ts";
import { exitCodes, Failure } from "../../failure.ts";
import { findSite } from "../../site.ts";
import { changeEnv } from "./change.ts";

export const unsetEnv = command("unset", "Remove variables", "variablesChanged")
  .argument("<names...>")
  .action(async (names) => {
    const { id, envVariables } = await findSite(await connect());
    const missing = names.filter((name) => !envVariables.some(({ key }) => key === name));
    if (missing.length > 0)
      throw new Failure(`The site has no variable ${missing.join(", ")}.`, {
        exitCode: exitCodes.notFound,
        hint: `Nothing was changed. \`${nextCommand("env list")}\` shows the site's variables.`,
      });
    await changeEnv(
      id,
      names.map((key) => ({ key, value: null })),
    );
  });

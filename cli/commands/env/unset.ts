import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { siteId } from "../../site.ts";
import { changeEnv } from "./change.ts";

export const unsetEnv = command("unset", "Remove variables", "variablesChanged")
  .argument("<names...>")
  .action(async (names) =>
    changeEnv(
      await siteId(await connect()),
      names.map((key) => ({ key, value: null })),
    ),
  );

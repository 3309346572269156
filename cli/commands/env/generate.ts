import { answered } from "../../answered.ts";
import { command, whole } from "../../command.ts";
import { connect, nextCommand } from "../../context.ts";
import { siteId } from "../../site.ts";
import { safe } from "../../terminal.ts";

export const generateEnv = command(
  "generate",
  "Set a secret to a random value that nobody sees",
  "generateSecret",
)
  .argument("<name>")
  .option("--length <n>", "characters", whole)
  .action(async (key, { length }) =>
    answered(
      "generateSecret",
      { id: await siteId(await connect()), key, length },
      ({ restartRequired }) =>
        `Set ${safe(key)}.${restartRequired ? ` The running site has the old value: ${nextCommand("sites restart")}` : ""}`,
    ),
  );

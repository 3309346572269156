import { command } from "../../command.ts";
import { exitCodes } from "../../failure.ts";
import { showValue } from "../../terminal.ts";
import { compareEnv, differenceText } from "./compare.ts";

export const diffEnv = command(
  "diff",
  "How a .env file differs from the site's variables; exits with 1 if it does",
  "variablesDifference",
)
  .argument("[file]", "a .env file, or a JSON object of names and values", ".env")
  .action(async (file) => {
    const { added, changed, removed, unknown, values } = await compareEnv(file);
    const difference = { added, changed, removed, unknown, values };
    showValue(
      "variablesDifference",
      { added, changed, removed, unknown },
      () => differenceText(difference) || "No difference.",
    );
    if (added.length + changed.length + removed.length > 0) process.exitCode = exitCodes.failure;
  });

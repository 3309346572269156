import { command } from "../../command.ts";
import { confirmed } from "../../context.ts";
import { safe, say, showValue } from "../../terminal.ts";
import { changeEnv } from "./change.ts";
import { compareEnv, differenceText } from "./compare.ts";

export const pushEnv = command("push", "Set a site's variables to those of a .env file", "variablesChanged")
  .argument("[file]", "a .env file, or a JSON object of names and values", ".env")
  .option("--prune", "also remove variables that the file does not have, except secrets")
  .option("--secret", "store the new ones encrypted")
  .action(async (file, options) => {
    const difference = await compareEnv(file);
    const removed = options.prune ? difference.removed : [];
    const set = [...difference.added, ...difference.changed, ...difference.unknown];
    if (set.length + removed.length === 0) {
      showValue("variablesChanged", { changed: [], restartRequired: false }, () => "No difference.");
      return;
    }
    say(differenceText({ ...difference, removed }));
    if (removed.length > 0) await confirmed(`Remove ${removed.map(safe).join(", ")}?`);
    await changeEnv(difference.id, [
      ...set.map((key) => ({
        key,
        value: difference.values[key] ?? "",
        ...(options.secret && difference.added.includes(key) && { encrypted: true }),
      })),
      ...removed.map((key) => ({ key, value: null })),
    ]);
  });

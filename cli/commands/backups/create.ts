import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { show, status } from "../../terminal.ts";
import { untilFinished } from "./wait.ts";

export const createBackup = command("create", "Back a database up now", "createBackup")
  .argument("<database>", "name or id")
  .option("--no-wait", "do not wait until it is stored")
  .action(async (named, options) => {
    const client = await connect();
    const made = await client.call("createBackup", { id: await databaseId(client, named) }, { signal });
    const done = options.wait ? await untilFinished(client, made.id) : made;
    show("createBackup", done, (one) => `${one.id} is ${status(one.status)}.`);
  });

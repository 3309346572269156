import { command } from "../../command.ts";
import { confirmed, connect, nextCommand, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const restore = command(
  "restore",
  "Restore a backup; what it replaces is backed up first, if possible",
  "restoreDatabase",
)
  .argument("<database>", "name or id")
  .argument("<backup>", "id")
  .action(async (named, backupId) => {
    const client = await connect();
    const id = await databaseId(client, named);
    await confirmed(
      `Replace the data in ${safe(named)} with ${safe(backupId)}? It is backed up first, and replaced even if that fails.`,
    );
    show(
      "restoreDatabase",
      await client.call("restoreDatabase", { id, backupId }, { signal }),
      () => `Restoring. Its result: ${nextCommand(`databases events ${safe(named)}`, null)}`,
    );
  });

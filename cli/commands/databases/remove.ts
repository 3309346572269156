import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { databaseId } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const deleteDatabase = command(
  "delete",
  "Delete a database; a final backup is kept for 30 days",
  "deleteDatabase",
)
  .argument("<database>", "name or id")
  .action(async (named) => {
    const client = await connect();
    const id = await databaseId(client, named);
    await confirmed(`Delete ${safe(named)}?`);
    show(
      "deleteDatabase",
      await client.call("deleteDatabase", { id }, { signal }),
      () => `${safe(named)} is being deleted, after a final backup.`,
    );
  });

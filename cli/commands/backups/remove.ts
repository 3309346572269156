import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { safe, show } from "../../terminal.ts";

export const deleteBackup = command("delete", "Delete a backup, or cancel one in progress", "deleteBackup")
  .argument("<backup>", "id")
  .action(async (id) => {
    const client = await connect();
    await confirmed(`Delete ${safe(id)}?`);
    show("deleteBackup", await client.call("deleteBackup", { id }, { signal }), () => "Deleted.");
  });

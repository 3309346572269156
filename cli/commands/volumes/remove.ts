import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const deleteVolume = command(
  "delete",
  "Permanently delete a detached volume with its data",
  "removeVolume",
)
  .argument("<name>")
  .action(async (name) => {
    const client = await connect();
    const id = await siteId(client);
    await confirmed(`Delete the volume ${safe(name)} with all its data?`);
    show(
      "removeVolume",
      await client.call("removeVolume", { id, name }, { signal }),
      () => `Deleted ${safe(name)}.`,
    );
  });

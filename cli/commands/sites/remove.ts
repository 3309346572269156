import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { findSite } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const deleteSite = command(
  "delete",
  "Permanently delete a site with its containers, volumes, secrets and logs",
  "deleteSite",
)
  .argument("<site>", "name or id")
  .action(async (named) => {
    const client = await connect();
    const site = await findSite(client, named);
    await confirmed(`Delete ${safe(site.name)} with all its data?`);
    show(
      "deleteSite",
      await client.call("deleteSite", { id: site.id }, { signal }),
      () => `${safe(site.name)} is being deleted.`,
    );
  });

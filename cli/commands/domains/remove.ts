import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { safe, show } from "../../terminal.ts";

export const removeDomain = command("remove", "Remove a domain from a site", "deleteDomain")
  .argument("<domain>")
  .action(async (name) => {
    const client = await connect();
    const id = await siteId(client);
    await confirmed(`Remove ${safe(name)} from the site?`);
    show(
      "deleteDomain",
      await client.call("deleteDomain", { id, name }, { signal }),
      ({ domain }) => `Removed ${safe(domain)}.`,
    );
  });

import { command } from "../../command.ts";
import { confirmed, connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { show } from "../../terminal.ts";

export const rotateWebhook = command(
  "rotate",
  "Replace the address; the old one stops working immediately",
  "rotateWebhook",
)
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    const id = await siteId(client, site);
    await confirmed("Replace the address? The old one stops working immediately.");
    show("rotateWebhook", await client.call("rotateWebhook", { id }, { signal }), ({ url }) => url);
  });
